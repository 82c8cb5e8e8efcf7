"""Solves with a penalty: f + h, f smooth and h known by its prox."""

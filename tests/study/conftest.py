"""A browser for the tests of pages."""

import os
import shutil

import pytest

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser():
    """A headless Chromium. In CI it must be there."""
    absent = pytest.fail if os.environ.get("CI") else pytest.skip
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        absent("needs a browser: apt-get install chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        absent("needs playwright: pip install playwright")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture
def opened(browser):
    """Open a page; afterwards, no error was logged and nothing was asked of any network."""
    contexts, addresses, requests, complaints = [], [], [], []

    def show(address, **options):
        contexts.append(browser.new_context(**options))
        addresses.append(address)
        view = contexts[-1].new_page()
        view.on("request", lambda request: requests.append(request.url))
        view.on("pageerror", lambda error: complaints.append(str(error)))
        view.on("console", lambda message: complaints.append(message.text))
        view.goto(address)
        return view

    yield show
    for context in contexts:
        context.close()
    assert requests == addresses
    assert complaints == []

/* How to use @FILE@: logistic regression on made-up rows, solved whatever the method makes of them.
 *     cc -std=c99 -O2 @EXAMPLE@ -o example -lm && ./example
 */
#include <stdio.h>

#include "@FILE@"

#ifndef COLUMNS
#define COLUMNS @COLUMNS@
#endif
#if @UPPER@_N != 0 && COLUMNS != @UPPER@_N
#error "@FILE@ is for another number of variables: export a method that was learned for this one"
#endif
#define ROWS 400
#define RIDGE 0.01
#define MOST_STEPS 10000

typedef struct {
    double A[ROWS][COLUMNS], b[ROWS];
} rows;

static double random_number(unsigned long *state)
{
    *state = (*state * 1103515245UL + 12345UL) & 0x7fffffffUL;
    return (double)*state / 1073741824.0 - 1.0;
}

static void make(rows *all)
{
    unsigned long state = 1;
    int i, j;
    for (i = 0; i < ROWS; i++) {
        double z = 0.0;
        for (j = 0; j < COLUMNS; j++) {
            all->A[i][j] = random_number(&state);
            z += all->A[i][j];
        }
        all->b[i] = z + random_number(&state) > 0.0;
    }
}

/* g = A^T (sigmoid(A x) - b) / ROWS + RIDGE x */
static int gradient(size_t n, const double *x, double *g, void *data)
{
    const rows *all = data;
    size_t i, j;
    for (j = 0; j < n; j++) g[j] = RIDGE * x[j];
    for (i = 0; i < ROWS; i++) {
        double z = 0.0, slope;
        for (j = 0; j < n; j++) z += all->A[i][j] * x[j];
        slope = (1.0 / (1.0 + exp(-z)) - all->b[i]) / ROWS;
        for (j = 0; j < n; j++) g[j] += slope * all->A[i][j];
    }
    return 0;
}

/* Hv = A^T diag(s (1 - s)) A v / ROWS + RIDGE v with s = sigmoid(A x) */
static int product(size_t n, const double *x, const double *v, double *Hv, void *data)
{
    const rows *all = data;
    size_t i, j;
    for (j = 0; j < n; j++) Hv[j] = RIDGE * v[j];
    for (i = 0; i < ROWS; i++) {
        double z = 0.0, along = 0.0, s;
        for (j = 0; j < n; j++) {
            z += all->A[i][j] * x[j];
            along += all->A[i][j] * v[j];
        }
        s = 1.0 / (1.0 + exp(-z));
        for (j = 0; j < n; j++) Hv[j] += s * (1.0 - s) * along / ROWS * all->A[i][j];
    }
    return 0;
}

/* Gradient descent for what the table leaves; your L-BFGS is better. A step of 1/L is taken where
 * <g(x+) - g(x), x+ - x> <= L/2 |x+ - x|^2, which makes a convex function fall. */
static int descend(double *x, rows *all, double tol, double *norm)
{
    static double g[COLUMNS], next[COLUMNS], g_next[COLUMNS];
    double L = 1.0;
    int steps, j;
    gradient(COLUMNS, x, g, all);
    for (steps = 0; (*norm = @LOWER@_norm(COLUMNS, g)) > tol && steps < MOST_STEPS; steps++) {
        double bend = 0.0, length = 0.0;
        for (j = 0; j < COLUMNS; j++) next[j] = x[j] - g[j] / L;
        gradient(COLUMNS, next, g_next, all);
        for (j = 0; j < COLUMNS; j++) {
            bend += (g_next[j] - g[j]) * (next[j] - x[j]);
            length += (next[j] - x[j]) * (next[j] - x[j]);
        }
        if (!(bend <= L / 2 * length)) {
            L *= 2.0;
            continue;
        }
        for (j = 0; j < COLUMNS; j++) {
            x[j] = next[j];
            g[j] = g_next[j];
        }
        L *= 0.9;
    }
    return steps;
}

int main(void)
{
    static rows all;
    static double x[COLUMNS], work[@UPPER@_WORK(COLUMNS)];
    /* The curvature is found by product, as these rows are not of the family; 0.0 is the method's rule. */
    @LOWER@_problem problem = {gradient, product, &all, -1.0, 0.0};
    @LOWER@_result result;
    int status, steps;

    make(&all);
    status = @LOWER@_start(COLUMNS, x);
    if (status == 0) status = @LOWER@_solve(COLUMNS, x, &problem, work, &result);
    printf("status %d: %s\n", status, @LOWER@_message(status));
    if (status < 0) return 1;
    printf("%d iterations, gradient norm %.3g, tolerance %.3g\n", result.iterations,
           result.grad_norm, @UPPER@_TOL);
    if (status == @UPPER@_CONVERGED) return 0;

    printf("The method was learned for other problems; gradient descent goes on from its best point.\n");
    steps = descend(x, &all, @UPPER@_TOL, &result.grad_norm);
    printf("%d steps, gradient norm %.3g: %s\n", steps, result.grad_norm,
           result.grad_norm <= @UPPER@_TOL ? "solved" : "not solved");
    return result.grad_norm <= @UPPER@_TOL ? 0 : 1;
}

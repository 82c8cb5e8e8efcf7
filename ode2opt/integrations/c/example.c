/* How to use @FILE@: logistic regression on made-up rows.
 *     cc -std=c99 -O2 @EXAMPLE@ -o example -lm && ./example
 */
#include <stdio.h>

#include "@FILE@"

#define ROWS 400
#define COLUMNS @COLUMNS@
#define RIDGE 0.01

typedef struct {
    double A[ROWS][COLUMNS], b[ROWS];
} rows;

static double random_number(unsigned long *state)
{
    *state = (*state * 1103515245UL + 12345UL) & 0x7fffffffUL;
    return (double)*state / 1073741824.0 - 1.0;
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

int main(void)
{
    static rows all;
    static double x[COLUMNS], work[@UPPER@_WORK(COLUMNS)];
    @LOWER@_problem problem = {gradient, product, NULL, -1.0, 0.0}; /* scaled by product */
    @LOWER@_result result = {0, 0.0, 0.0};
    unsigned long state = 1;
    int i, j, status;

    for (i = 0; i < ROWS; i++) {
        double z = 0.0;
        for (j = 0; j < COLUMNS; j++) {
            all.A[i][j] = random_number(&state);
            z += all.A[i][j];
        }
        all.b[i] = z + random_number(&state) > 0.0;
    }
    problem.data = &all;
    if (@LOWER@_start(COLUMNS, x) != 0) return 1;
    status = @LOWER@_solve(COLUMNS, x, &problem, work, &result);
    printf("status %d after %d iterations, gradient norm %.3g\n", status, result.iterations,
           result.grad_norm);
    return 0;
}

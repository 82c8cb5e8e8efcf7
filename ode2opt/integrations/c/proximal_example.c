/* How to use @FILE@: a sparse solution of made-up least squares, solved whatever the table makes of
 * it: where the table gives up, steps 1/L with a prox go on.
 *     cc -std=c99 -O2 @EXAMPLE@ -o example -lm && ./example
 */
#include <stdio.h>

#include "@FILE@"

#define ROWS 60
#define COLUMNS 20
#define WEIGHT 0.1
#define MOST_STEPS 100000

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
        for (j = 0; j < COLUMNS; j++) all->A[i][j] = random_number(&state);
        all->b[i] = all->A[i][0] - all->A[i][1] + 0.1 * random_number(&state);
    }
}

/* g = A^T (A x - b) / ROWS */
static int gradient(size_t n, const double *x, double *g, void *data)
{
    const rows *all = data;
    size_t i, j;
    for (j = 0; j < n; j++) g[j] = 0.0;
    for (i = 0; i < ROWS; i++) {
        double z = -all->b[i];
        for (j = 0; j < n; j++) z += all->A[i][j] * x[j];
        for (j = 0; j < n; j++) g[j] += z * all->A[i][j] / ROWS;
    }
    return 0;
}

/* The sum of the squares of A is above every curvature. */
static double curvature(const rows *all)
{
    double sum = 0.0;
    int i, j;
    for (i = 0; i < ROWS; i++)
        for (j = 0; j < COLUMNS; j++) sum += all->A[i][j] * all->A[i][j];
    return sum / ROWS;
}

int main(void)
{
    static rows all;
    static double x[COLUMNS], g[COLUMNS], work[@UPPER@_WORK(COLUMNS)];
    const @LOWER@_l1 penalty = {WEIGHT};
    @LOWER@_problem problem = {gradient, &all, @LOWER@_prox_l1, &penalty, 0.0, 1e-6};
    @LOWER@_result result;
    int status, step = 0, i;
    double L, size;

    make(&all);
    L = problem.scale = curvature(&all);
    status = @LOWER@_solve(COLUMNS, x, &problem, work, &result);
    printf("%s after %d iterations, residual %.3g\n", @LOWER@_message(status), result.iterations,
           result.residual);
    gradient(COLUMNS, x, g, &all);
    size = @LOWER@_residual(COLUMNS, x, g, &problem, work);
    while (size > 1e-6 && step < MOST_STEPS) {
        for (i = 0; i < COLUMNS; i++) x[i] -= g[i] / L;
        @LOWER@_prox_l1(COLUMNS, x, 1.0 / L, &penalty);
        gradient(COLUMNS, x, g, &all);
        size = @LOWER@_residual(COLUMNS, x, g, &problem, work);
        step++;
    }
    printf("%d steps more, residual %.3g, x = %.4f, %.4f, %.4f, ...\n", step, size, x[0], x[1], x[2]);
    return size <= 1e-6 ? 0 : 1;
}

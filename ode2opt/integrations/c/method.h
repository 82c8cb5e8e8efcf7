/* @WORDS@
 * Learned for: @FAMILY@
 * Written by ode2opt @VERSION@. C99, no allocation, nothing but <math.h>; link with -lm.
 *
 * With g the gradient, M the metric and L the curvature that the table is divided by, iteration k is
 *     e = u - (a_k/L) M g;  x <- x + e;  u <- u - d_k e - (c_k/L) M g,  with u = (a_0/L) M g first.
 * The gradient norm is Euclidean.
 *
 * The table was trained from @TRAINED@.
 *
 * The table is for problems of that family, with @VARIABLES@ variables. Of ode2opt's guard only the
 * blow-up test is here; its other tests and the solver that takes over are not. So look at the
 * return value: only CONVERGED (0) is a solution. Else x is the best point seen, and a solver of your
 * own has to go on from there, as in @EXAMPLE@.
 */
#ifndef @UPPER@_H
#define @UPPER@_H

#define @UPPER@_N @N@           /* variables that the metric or the start is made for; 0: any number */
#define @UPPER@_HORIZON @HORIZON@
#define @UPPER@_DIRECTIONS @DIRECTIONS@
#define @UPPER@_TOL @TOL@       /* the gradient norm it was learned to reach */
#define @UPPER@_BLOWUP @BLOWUP@ /* the guard: stop above this many times the first gradient norm */
#define @UPPER@_FAMILY_SCALE @FAMILY_SCALE@ /* 0: the method has none, see scale below */
#define @UPPER@_WORK(n) (5 * (n) + @UPPER@_DIRECTIONS) /* how many numbers of work space are needed */

@COMMON@/* What is minimised. A callback that returns something else than 0 stops the solve. */
typedef struct {
    int (*gradient)(size_t n, const double *x, double *g, void *data);
    int (*product)(size_t n, const double *x, const double *v, double *Hv, void *data); /* or NULL */
    void *data;
    /* The curvature to divide the table by. 0: by the method's own rule (@SCALE@);
     * below 0: <M g, H M g>/<M g, g> at the start, by product. */
    double scale;
    double tol; /* 0: @UPPER@_TOL */
} @LOWER@_problem;

typedef struct {
    int iterations;
    double grad_norm; /* at x, the best point seen; infinite where none is known */
    double scale;     /* the curvature that the table was divided by; 0: none was found */
} @LOWER@_result;

static const double @LOWER@_table[@HORIZON@][3] = { /* a, c, d for curvature 1 */
@TABLE@
};
@ARRAYS@
static inline double @LOWER@_dot(size_t n, const double *v, const double *w)
{
    double sum = 0.0;
    size_t i;
    for (i = 0; i < n; i++) sum += v[i] * w[i];
    return sum;
}

/* p = M g; "rest" is work space for @UPPER@_DIRECTIONS numbers. */
static inline void @LOWER@_metric(size_t n, const double *g, double *p, double *rest)
{
@METRIC@
}

/* The learned start, or 0. What the table was trained from is said above. */
static inline int @LOWER@_start(size_t n, double *x)
{
    size_t i;
    if (@UPPER@_N != 0 && n != @UPPER@_N) return @UPPER@_WRONG_N;
    for (i = 0; i < n; i++) x[i] = @START@;
    return 0;
}

/* Follow the table from x, which becomes the point with the smallest gradient norm that was seen.
 * "work" has @UPPER@_WORK(n) numbers; "result" is filled in whatever happens, and may be NULL.
 * Returns one of the codes above; n is looked at before anything is read or written. */
static inline int @LOWER@_solve(size_t n, double *x, const @LOWER@_problem *problem, double *work,
                                @LOWER@_result *result)
{
    double *g = work, *u = g + n, *p = u + n, *best = p + n, *Hp = best + n, *rest = Hp + n;
    const double tol = problem->tol > 0.0 ? problem->tol : @UPPER@_TOL;
    double L = problem->scale, first, norm, least;
    int k, made, status = @UPPER@_HORIZON_OVER;
    size_t i;

    if (result != NULL) {
        result->iterations = 0;
        result->grad_norm = INFINITY;
        result->scale = 0.0;
    }
    if (@UPPER@_N != 0 && n != @UPPER@_N) return @UPPER@_WRONG_N;
    if (problem->gradient(n, x, g, problem->data)) return @UPPER@_STOPPED;
    first = least = norm = @LOWER@_norm(n, g);
    if (!isfinite(first)) return @UPPER@_NOT_FINITE;
    if (result != NULL) result->grad_norm = first;
    @LOWER@_metric(n, g, p, rest);
    if (fpclassify(L) == FP_ZERO) L = @RULE@;
    if (L < 0.0 && problem->product != NULL) {
        if (problem->product(n, x, p, Hp, problem->data)) return @UPPER@_STOPPED;
        L = @LOWER@_dot(n, p, Hp) / @LOWER@_dot(n, p, g);
        if (!(L > 1e-290 && isfinite(L))) L = 1.0; /* it tells nothing */
    }
    if (!(L > 0.0 && isfinite(L))) return @UPPER@_WRONG_SCALE;

    /* The first iteration does not move: e = 0. */
    for (i = 0; i < n; i++) {
        u[i] = (@LOWER@_table[0][0] - @LOWER@_table[0][1]) / L * p[i];
        best[i] = x[i];
    }
    made = norm > tol ? 1 : 0;
    for (k = 1; norm > tol && k < @UPPER@_HORIZON; k++) {
        const double a = @LOWER@_table[k][0] / L, c = @LOWER@_table[k][1] / L, d = @LOWER@_table[k][2];
        for (i = 0; i < n; i++) {
            u[i] -= a * p[i];
            x[i] += u[i];
            u[i] = (1.0 - d) * u[i] + (a - c) * p[i];
        }
        made = k + 1;
        if (problem->gradient(n, x, g, problem->data)) { status = @UPPER@_STOPPED; break; }
        norm = isfinite(@LOWER@_norm(n, x)) ? @LOWER@_norm(n, g) : INFINITY;
        if (!isfinite(norm)) { status = @UPPER@_NOT_FINITE; break; }
        if (norm < least) {
            least = norm;
            for (i = 0; i < n; i++) best[i] = x[i];
        }
        if (norm > @UPPER@_BLOWUP * first) { status = @UPPER@_BLEW_UP; break; }
        @LOWER@_metric(n, g, p, rest);
    }
    if (norm <= tol) status = @UPPER@_CONVERGED;
    for (i = 0; i < n; i++) x[i] = best[i];
    if (result != NULL) {
        result->iterations = made;
        result->grad_norm = least;
        result->scale = L;
    }
    return status;
}

#endif

/* @WORDS@
 * Learned for: @FAMILY@
 * Written by ode2opt @VERSION@. C99, no allocation, nothing but <math.h>; link with -lm.
 *
 * It minimises f + h, f smooth and h known by its prox. With L the curvature that the table is
 * divided by, iteration k is
 *     g_k = grad f(x + w_k (x - x_before)),
 *     x <- prox_s(x + m_k (x - x_before) - (p_k/L) g_k + (q_k/L) g_{k-1}),  s = (p_k - q_k)/L.
 * The residual is |x - prox_1(x - grad f(x))|. There are at most @HORIZON@ iterations.
 *
 * The table was trained from @TRAINED@ (its projection, where that is outside of h).
 *
 * Of ode2opt's guard the blow-up test and the envelope are here; its other tests and the solver that
 * takes over are not. So look at the return value: only CONVERGED (0) is a solution. Else x is the
 * best point seen, and a solver of your own has to go on from there, as in @EXAMPLE@.
 */
#ifndef @UPPER@_H
#define @UPPER@_H

#define @UPPER@_HORIZON @HORIZON@
#define @UPPER@_TOL @TOL@       /* the residual it was learned to reach */
#define @UPPER@_BLOWUP @BLOWUP@ /* the guard: stop above this many times the first residual */
#define @UPPER@_ENVELOPE @COUNT@ /* the guard: iterations of which held-out residuals are known */
#define @UPPER@_FAMILY_SCALE @FAMILY_SCALE@
#define @UPPER@_WORK(n) (6 * (n)) /* how many numbers of work space are needed */

@COMMON@/* The prox of h: v becomes the minimiser of h(z) + |z - v|^2 / (2 step). */
typedef void (*@LOWER@_prox)(size_t n, double *v, double step, const void *penalty);

typedef struct { double weight; } @LOWER@_l1;                 /* weight |x|_1 */
typedef struct { const double *lower, *upper; } @LOWER@_box; /* lower <= x <= upper, n numbers each */
typedef struct { double radius; } @LOWER@_simplex;            /* x >= 0, sum x = radius */

static inline void @LOWER@_prox_l1(size_t n, double *v, double step, const void *penalty)
{
    const double reach = step * ((const @LOWER@_l1 *)penalty)->weight;
    size_t i;
    for (i = 0; i < n; i++) v[i] -= v[i] > reach ? reach : v[i] < -reach ? -reach : v[i];
}

static inline void @LOWER@_prox_box(size_t n, double *v, double step, const void *penalty)
{
    const @LOWER@_box *box = penalty;
    size_t i;
    (void)step;
    for (i = 0; i < n; i++)
        v[i] = v[i] > box->upper[i] ? box->upper[i] : v[i] < box->lower[i] ? box->lower[i] : v[i];
}

/* The threshold rises until the numbers above it have the sum that is due; each pass leaves out
 * numbers for good, so that there are at most n (Michelot, 1986). */
static inline void @LOWER@_prox_simplex(size_t n, double *v, double step, const void *penalty)
{
    const double radius = ((const @LOWER@_simplex *)penalty)->radius;
    double largest = v[0], threshold, before;
    size_t i, pass;
    (void)step;
    for (i = 1; i < n; i++)
        if (v[i] > largest) largest = v[i];
    for (i = 0; i < n; i++) v[i] -= largest;
    threshold = -radius - 1.0;
    for (pass = 0; pass <= n; pass++) {
        double sum = 0.0, count = 0.0;
        for (i = 0; i < n; i++)
            if (v[i] > threshold) { sum += v[i]; count += 1.0; }
        before = threshold;
        threshold = (sum - radius) / count;
        if (!(threshold > before)) break;
    }
    for (i = 0; i < n; i++) v[i] = v[i] > threshold ? v[i] - threshold : 0.0;
}

/* What is minimised. A gradient that returns something else than 0 stops the solve. */
typedef struct {
    int (*gradient)(size_t n, const double *x, double *g, void *data);
    void *data;
    @LOWER@_prox prox;   /* one of those above, or your own */
    const void *penalty; /* what prox is given */
    double scale;        /* the curvature to divide the table by; 0: @UPPER@_FAMILY_SCALE */
    double tol;          /* 0: @UPPER@_TOL */
} @LOWER@_problem;

typedef struct {
    int iterations;
    double residual; /* at x, the best point seen; infinite where none is known */
    double scale;    /* the curvature that the table was divided by; 0: none */
} @LOWER@_result;

static const double @LOWER@_table[@HORIZON@][4] = { /* m, p, q, w for curvature 1 */
@TABLE@
};

static const double @LOWER@_envelope[] = { /* in first residuals; the last number is not used */
@ENVELOPE@
};

/* |x - prox_1(x - g)|; "room" is work space for n numbers. */
static inline double @LOWER@_residual(size_t n, const double *x, const double *g,
                                      const @LOWER@_problem *problem, double *room)
{
    size_t i;
    for (i = 0; i < n; i++) {
        room[i] = x[i] - g[i];
        if (!isfinite(room[i])) return INFINITY;
    }
    problem->prox(n, room, 1.0, problem->penalty);
    for (i = 0; i < n; i++) room[i] = x[i] - room[i];
    return @LOWER@_norm(n, room);
}

/* Follow the table from x, a point where h is finite (the prox of 0 is one), which becomes the point
 * with the smallest residual that was seen. "work" has @UPPER@_WORK(n) numbers; "result" is filled in
 * whatever happens, and may be NULL. Returns one of the codes above. */
static inline int @LOWER@_solve(size_t n, double *x, const @LOWER@_problem *problem, double *work,
                                @LOWER@_result *result)
{
    double *g = work, *slope = g + n, *slope_before = slope + n, *before = slope_before + n;
    double *room = before + n, *best = room + n;
    const double tol = problem->tol > 0.0 ? problem->tol : @UPPER@_TOL;
    const double L = fpclassify(problem->scale) == FP_ZERO ? @UPPER@_FAMILY_SCALE : problem->scale;
    double first, size, least;
    int k, status = @UPPER@_HORIZON_OVER;
    size_t i;

    if (result != NULL) {
        result->iterations = 0;
        result->residual = INFINITY;
        result->scale = 0.0;
    }
    if (!(L > 0.0 && isfinite(L))) return @UPPER@_WRONG_SCALE;
    if (problem->gradient(n, x, g, problem->data)) return @UPPER@_STOPPED;
    first = least = size = @LOWER@_residual(n, x, g, problem, room);
    if (!isfinite(first)) return @UPPER@_NOT_FINITE;
    for (i = 0; i < n; i++) {
        best[i] = before[i] = x[i];
        slope_before[i] = g[i];
    }
    for (k = 0; size > tol && k < @UPPER@_HORIZON; k++) {
        const double m = @LOWER@_table[k][0], p = @LOWER@_table[k][1] / L;
        const double q = @LOWER@_table[k][2] / L, w = @LOWER@_table[k][3];
        if (k > 0 && fpclassify(w) != FP_ZERO) {
            for (i = 0; i < n; i++) room[i] = x[i] + w * (x[i] - before[i]);
            if (problem->gradient(n, room, slope, problem->data)) {
                status = @UPPER@_STOPPED;
                break;
            }
        } else {
            for (i = 0; i < n; i++) slope[i] = g[i];
        }
        for (i = 0; i < n; i++) {
            room[i] = x[i] + m * (x[i] - before[i]) - p * slope[i] + q * slope_before[i];
            slope_before[i] = slope[i];
        }
        problem->prox(n, room, p - q, problem->penalty);
        for (i = 0; i < n; i++) {
            before[i] = x[i];
            x[i] = room[i];
        }
        if (problem->gradient(n, x, g, problem->data)) {
            status = @UPPER@_STOPPED;
            break;
        }
        size = @LOWER@_residual(n, x, g, problem, room);
        if (!isfinite(size)) {
            status = @UPPER@_NOT_FINITE;
            k++;
            break;
        }
        if (size < least) {
            least = size;
            for (i = 0; i < n; i++) best[i] = x[i];
        }
        if (size > tol && (size > @UPPER@_BLOWUP * first ||
                           (k + 1 < @UPPER@_ENVELOPE && size > @LOWER@_envelope[k + 1] * first))) {
            status = @UPPER@_BLEW_UP;
            k++;
            break;
        }
    }
    if (size <= tol) status = @UPPER@_CONVERGED;
    for (i = 0; i < n; i++) x[i] = best[i];
    if (result != NULL) {
        result->iterations = k;
        result->residual = least;
        result->scale = L;
    }
    return status;
}

#endif

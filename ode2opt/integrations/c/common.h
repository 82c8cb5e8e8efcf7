#include <math.h>
#include <stddef.h>

#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
#error "compile without -ffast-math: the guard must see numbers that are not finite"
#endif

enum { /* what to do; @LOWER@_message has the meanings */
@CODES@
};

static inline const char *@LOWER@_message(int status)
{
    switch (status) {
@MESSAGES@
    default: return "no status of this method";
    }
}

static inline double @LOWER@_norm(size_t n, const double *v)
{
    double largest = 0.0, sum = 0.0;
    size_t i;
    for (i = 0; i < n; i++) {
        if (!isfinite(v[i])) return INFINITY;
        if (fabs(v[i]) > largest) largest = fabs(v[i]);
    }
    if (largest <= 0.0) return 0.0;
    for (i = 0; i < n; i++) sum += (v[i] / largest) * (v[i] / largest);
    return largest * sqrt(sum);
}


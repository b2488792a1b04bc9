/* Frames along trajectories of a map: x <- f(t, x, p), V <- f_x V. */

#include "company.h"

INLINE void cross(const work *job, crew *c, int l, int j) { (void)job; (void)c; (void)l; (void)j; }

#include "course.h"

/* One iteration of the crew; the places of the crew's series keep the state before it. */
static void step(const work *job, crew *c)
{
    v y[N], J[N * N];
    for (int i = 0; i < N; i++) c->s[i * STRIDE] = c->x[i];
    next_state(c->x, c->p, c->t, y);
    next_jacobian(c->x, c->p, c->t, J);
    for (int place = 0; place < c->places; place++) {
        w *V = c->S + c->where[place].first;
        const int stride = c->where[place].stride;
        for (int i = 0; i < N; i++) {
            c->q[i] = all(0);
            for (int m = 0; m < N; m++) c->q[i] = FMA(J[i * N + m], V[m * stride], c->q[i]);
        }
        for (int i = 0; i < N; i++) V[i * stride] = c->q[i];
    }
    const v volume = determinant(J);
    note(&c->volume, &c->volume_powers, volume * volume, all(1));
    c->flat = larger(c->flat, 1 - usable(volume * volume));
    for (int i = 0; i < N; i++) c->x[i] = y[i];
    const v h = c->occupied, next = c->at + h, arrived = at_most(c->length, next);
    const int crossed[W] = {0};
    end_step(job, c, h, next, arrived, crossed);
}

/* What lanes note of the surfaces that they meet: kinks, roots at which the state jumps, and times of jumps. Models
   without them say nothing about their number. */

#ifndef SLIDES
#define SLIDES 0   /* kinks along which a path can slide; whether a lane does is mode[KINKS + slide] */
#endif
#ifndef ROOTS
#define ROOTS 0    /* jumps of the state at roots */
#endif
#ifndef TIMED
#define TIMED 0    /* jumps of the state at given times */
#endif
#define JUMPS (ROOTS + TIMED)
#define MODES (KINKS + SLIDES + 1)
#define SURFACES (KINKS + 2 * SLIDES + TIMED)   /* numbers of crossings: kinks, ends of slides, times */

enum { ZENO = 7, GRAZING = 8, UNDECIDED = 9, RHYTHM = 10 };   /* the number of the surface is in the higher bits */

typedef struct {
    real scale[W], bend[W];        /* of the surface that comes next: sizes of g and of its second derivative */
    v step;                        /* how long it is */
    long count[TIMED + 1][W];      /* jumps at times: the number of the next, -1 where it is not known */
    real due[TIMED + 1][W];        /* and its time */
} meetings;

/* A lane cannot go on at a surface. */
#define STOP_AT(c, l, outcome, surface) ((c)->stuck[l] = (outcome) | ((surface) + 1) << 8)

/* A linearised chain; n states, q parameters and k rows at a node are compiled in. */
#include "lanes.h"
#include "transpose.h"
#include <stdlib.h>

#define n N_STATES
#define q N_PARAMETERS
#define k N_ROWS
#define f (n + q)
#define WIDTH (f + 1)                          /* unknowns and right-hand side */
#define TOGETHER (k < 16 ? 16 / k : 1)         /* nodes whose rows are rotated at once: roots and quotients take long */
#define SMALLEST_PART 1e-3                     /* of the largest state: the unit of a state that is (still) zero */

/* The problem where its members are, and what is found out about it; linear/compiled.py holds its twin. */
typedef struct {
    long members, nodes;
    const double *at_nodes, *at_parameters;                    /* z (members, N, n), (members, q) */
    const double *rows_by_node, *rows_by_parameters;           /* A, B (members, N, k, n or q); no B: zero */
    long row_strides[4];                                       /* of members and nodes in A and B: 0 where all share */
    const double *links_by_node, *links_by_parameters;         /* G, H (members, N - 1, n, n or q) */
    const double *rows, *links;                                /* F(z) (members, N, k), (members, N - 1, n) */
    const unsigned char *linked;
    int freedoms;
    double growth;
    double *states, *parameters;                               /* scales (members, n), (members, q) */
    double *step_nodes, *step_parameters;                      /* dz = -J+ F (members, N, n), (members, q) */
    double *increment, *objective, *defect;                    /* (members,) length of dz, ||F1||^2, largest |F2| */
    double *inverse;                                           /* (members, f, f) of the triangle, where windows are one */
    int *windows;                                              /* (members,) how many */
    unsigned char *closes;                                     /* (members, N) 1 where a window ends; zero before */
    double *condition;                                         /* (members,) an upper bound */
} chain;

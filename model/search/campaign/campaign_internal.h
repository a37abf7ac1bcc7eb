/* campaign_internal.h - what the simulation and the policies share. */
#ifndef DL_MODEL_SEARCH_CAMPAIGN_CAMPAIGN_INTERNAL_H
#define DL_MODEL_SEARCH_CAMPAIGN_CAMPAIGN_INTERNAL_H

#include "model/search/campaign/campaign.h"

/* A binary heap of numbers with ids: the least key first, then the order of insertion. */
struct dl_heap_entry {
    double key;
    int64_t order;
    int id;
};
struct dl_heap {
    struct dl_heap_entry *entries;
    int count, capacity;
    int64_t inserted;
    struct dl_arena *arena;
};
void dl_heap_add(struct dl_heap *heap, double key, int id);
/* Removes and returns the first; the heap is not empty. */
struct dl_heap_entry dl_heap_take(struct dl_heap *heap);

/* A piece of work that waits for a slot. */
struct dl_campaign_piece {
    int trial, rung;
    double train_s; /* still to do */
    bool resumed;
};

/* Which trials run when. Trials have ranks, drawn once: 0 is the best, and stays so. */
struct dl_campaign_state {
    const struct dl_campaign *campaign;
    const int *rank; /* of each trial */
    /* by trial: first rung, bracket */
    int *first_rung, *bracket;
    int bracket_count;
    int *bracket_first;      /* first trial of each bracket, which holds neighbours; and the end */
    int *open;               /* by bracket and rung: trials not yet done */
    int *members;            /* by bracket and rung: trials that take part */
    int *done;               /* ASHA by rung: trials that are done */
    int *promoted;           /* ASHA by rung and rank: Fenwick tree of promoted trials */
    struct dl_heap *waiting; /* ASHA by rung: done, not promoted, by rank */
    int next_trial;          /* ASHA: not yet begun */
    /* what becomes ready is appended here */
    struct dl_campaign_piece *ready;
    int ready_count;
    struct dl_arena *arena;
};

/* Fraction of the training that is done after a rung. */
double dl_campaign_rung_frac(const struct dl_campaign *campaign, int rung);
/* Draws ranks and puts the first pieces into `ready`. */
void dl_campaign_begin(struct dl_campaign_state *state);
/* A piece ended: what follows from it goes into `ready`. */
void dl_campaign_ended(struct dl_campaign_state *state, const struct dl_campaign_piece *piece);
/* ASHA: a slot is idle and nothing is ready: promotes a trial or begins one. */
void dl_campaign_idle(struct dl_campaign_state *state);
/* Uniform in (0, 1). */
double dl_campaign_random(uint64_t *seed);

#endif

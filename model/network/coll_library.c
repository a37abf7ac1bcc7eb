/* coll_library.c - see coll_library.h. */
#include "model/network/coll_library.h"

#include <string.h>

const char *const dl_collective_op_names[] = {
    "p2p",    "broadcast", "reduce", "all_reduce", "reduce_scatter", "all_gather", "all_to_all",
    "gather", "scatter",   "halo",   NULL};

#define NAME(index, row, name) name,
const char *const dl_library_names[] = {DL_LIBRARY_ROWS(NAME) NULL};

#define DECLARE(index, row, name) extern const struct dl_collective_library dl_library_##row;
DL_LIBRARY_ROWS(DECLARE)
#define ADDRESS(index, row, name) &dl_library_##row,
const struct dl_collective_library *const dl_libraries[] = {DL_LIBRARY_ROWS(ADDRESS) NULL};

static int find(const char *const *names, const char *name) {
    for (int i = 0; names[i] != NULL; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

int dl_collective_op_find(const char *name) { return find(dl_collective_op_names, name); }
int dl_library_find(const char *name) { return find(dl_library_names, name); }

int dl_library_algorithm_find(enum dl_library library, enum dl_collective_op op, const char *name) {
    const struct dl_collective_algorithm *algorithms = dl_libraries[library]->algorithms;
    for (int i = 0; algorithms[i].name != NULL; i++)
        if ((algorithms[i].operations >> op & 1u) != 0 && strcmp(algorithms[i].name, name) == 0)
            return i;
    return -1;
}

/* probe_mpi_survey.c - see the header. Pairs are measured one after the other, all of them up to
 * ALL_PAIRS ranks, and the fastest of a few exchanges counts: the survey finds what a link can
 * attain, not what it attained under load. */
#include "calibrate/probes/mpi/probe_mpi_survey.h"

#include <math.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrate/probes/common/probe_common.h"

enum { ALL_PAIRS = 16, SHORT_BYTES = 8, LONG_BYTES = 1 << 20, TEXT_BYTES = 256, HOST_TAG = 7 };

void dl_mpi_gather_ranks(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    for (MPI_Test(&request, &done, MPI_STATUS_IGNORE); !done;
         MPI_Test(&request, &done, MPI_STATUS_IGNORE)) {
        const struct timespec pause = {.tv_nsec = 500000};
        nanosleep(&pause, NULL);
    }
}

/* Gathers the texts of all ranks at rank 0, TEXT_BYTES each. NULL on the other ranks, or out of
 * memory. */
static char *collect(const char *own, int rank, int ranks) {
    char mine[TEXT_BYTES] = "";
    snprintf(mine, sizeof mine, "%s", own);
    char *all = rank == 0 ? calloc((size_t)ranks, TEXT_BYTES) : NULL;
    int failed = rank == 0 && all == NULL;
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (failed) return NULL;
    MPI_Gather(mine, TEXT_BYTES, MPI_CHAR, all, TEXT_BYTES, MPI_CHAR, 0, MPI_COMM_WORLD);
    return all;
}

static void print_joined(const char *key, const char *texts, int ranks) {
    char *line = calloc((size_t)ranks, TEXT_BYTES + 1);
    size_t used = 0;
    for (int i = 0; i < ranks && line != NULL; i++) {
        const char *text = texts + (size_t)i * TEXT_BYTES;
        used += (size_t)snprintf(line + used, TEXT_BYTES + 1, "%s%s", i > 0 ? "," : "", text);
    }
    if (line != NULL) dl_print_fact(key, line);
    free(line);
}

void dl_mpi_print_hosts(void) {
    int rank, ranks, length = 0;
    char name[MPI_MAX_PROCESSOR_NAME] = "", nics[TEXT_BYTES] = "";
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    MPI_Get_processor_name(name, &length);
    dl_mpi_describe_nics(nics, sizeof nics);
    char *hosts = collect(name, rank, ranks), *interfaces = collect(nics, rank, ranks);
    if (hosts != NULL && interfaces != NULL) {
        print_joined("hosts", hosts, ranks);
        /* Once for all nodes that equal the first, and for each that differs. */
        for (int i = 0; i < ranks; i++) {
            char key[TEXT_BYTES + 8];
            const char *text = interfaces + (size_t)i * TEXT_BYTES;
            if (i > 0 && strcmp(text, interfaces) == 0) continue;
            snprintf(key, sizeof key, i == 0 ? "nics" : "nics_%s", hosts + (size_t)i * TEXT_BYTES);
            dl_print_fact(key, text);
        }
    }
    free(hosts);
    free(interfaces);
}

/* One-way time between this rank and the other: the fastest of `tries` groups of `calls`. */
static double exchange(bool first, int other, char *buffer, int bytes, int tries, int calls) {
    double best = INFINITY;
    for (int t = 0; t < tries; t++) {
        const double start = MPI_Wtime();
        for (int i = 0; i < calls; i++) {
            if (first) MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
            MPI_Recv(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            if (!first) MPI_Send(buffer, bytes, MPI_BYTE, other, 0, MPI_COMM_WORLD);
        }
        const double each = (MPI_Wtime() - start) / (2.0 * calls);
        if (t > 0 && each < best) best = each; /* the first try opens connections */
    }
    return best;
}

/* Rank 0 prints what the first of the pair measured. */
static void report(int rank, int from, int to, const double times_s[2]) {
    double got[2] = {times_s[0], times_s[1]};
    if (rank == from && rank != 0) MPI_Send(got, 2, MPI_DOUBLE, 0, HOST_TAG, MPI_COMM_WORLD);
    if (rank != 0) return;
    if (from != 0) MPI_Recv(got, 2, MPI_DOUBLE, from, HOST_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int i = 0; i < 2; i++) {
        printf("{\"sample\":{\"probe\":\"pair\",\"shape\":\"bytes=%d from=%d "
               "to=%d\",\"pass\":\"net\",\"median_s\":%.9g,"
               "\"low_s\":%.9g,\"high_s\":%.9g}}\n",
               i == 0 ? SHORT_BYTES : LONG_BYTES, from, to, got[i], got[i], got[i]);
    }
    fflush(stdout);
}

static void measure_pair(int rank, int from, int to, char *buffer) {
    double times_s[2] = {0, 0};
    if (rank == from || rank == to) {
        const int other = rank == from ? to : from;
        times_s[0] = exchange(rank == from, other, buffer, SHORT_BYTES, 8, 25);
        times_s[1] = exchange(rank == from, other, buffer, LONG_BYTES, 4, 1);
    }
    dl_mpi_gather_ranks();
    report(rank, from, to, times_s);
}

int dl_mpi_survey(void) {
    int rank, ranks;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    char *buffer = calloc(LONG_BYTES, 1);
    int failed = buffer == NULL, any = 0;
    MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    dl_mpi_gather_ranks();
    for (int step = 1; step < ranks && !any; step = ranks <= ALL_PAIRS ? step + 1 : 2 * step) {
        for (int from = 0; from < ranks; from++) {
            const int to = (from + step) % ranks;
            if (ranks <= ALL_PAIRS && to < from)
                continue; /* already measured from the other side */
            measure_pair(rank, from, to, buffer);
        }
    }
    free(buffer);
    if (any && rank == 0) fprintf(stderr, "out of memory for the survey\n");
    return any ? DL_ERR_BACKEND : 0;
}

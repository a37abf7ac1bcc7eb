/* coll_match.c - see coll_match.h. */
#include "model/network/coll_match.h"

#include <math.h>
#include <string.h>

#include "model/core/csv_field.h"

/* A row with only its bus bandwidth is treated as a message of this size. */
static const double LARGE_BYTES = 1073741824.0;

static bool given(const char *text) { return text != NULL && text[0] != '\0'; }

double dl_collective_bus_factor(enum dl_collective_op op, double ranks) {
    switch (op) {
    case DL_COLL_ALL_REDUCE: return 2.0 * (ranks - 1.0) / ranks;
    case DL_COLL_ALL_GATHER:
    case DL_COLL_REDUCE_SCATTER:
    case DL_COLL_ALL_TO_ALL: return (ranks - 1.0) / ranks;
    default: return 1.0;
    }
}

/* Tables name libraries as people do: "Intel MLSL", "OSU Open MPI/UCX". -1: none of them. */
static int library_of(const char *name) {
    for (int i = 0; name != NULL && i < DL_LIBRARIES; i++)
        for (const char *const *word = dl_libraries[i]->spellings; *word != NULL; word++)
            if (strstr(name, *word) != NULL) return i;
    return name == NULL ? -1 : dl_library_find(name);
}

/* nccl-tests and torch.distributed say send_recv. -1: no operation of that name. */
static int op_of(const char *name) {
    if (name == NULL) return -1;
    return strcmp(name, "send_recv") == 0 ? DL_COLL_P2P : dl_collective_op_find(name);
}

/* Whether the text is an MPI release as system files write them: "openmpi-5.0", "hpcx". */
static bool is_mpi_release(const char *text) {
    static const char *const families[] = {"openmpi-", "hpcx", "mpich", "mvapich", "intel", "cray"};
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strncmp(text, families[i], strlen(families[i])) == 0) return true;
    return false;
}

static void take_version(const char *version, struct dl_coll_match *match) {
    const enum dl_library library = match->request.library;
    if (!given(version)) return;
    if (library == DL_LIB_NCCL && version[0] == '2' && version[1] == '.')
        match->nccl_version = version;
    else if (library == DL_LIB_MPI && is_mpi_release(version))
        match->mpi = version;
    else
        match->version_ignored = library == DL_LIB_NCCL || library == DL_LIB_MPI;
}

/* Size and time of the row, or those of a large message; NULL, or the reason why they are
 * missing. */
static const char *take_measurement(const struct dl_coll_row *row, struct dl_coll_match *match) {
    double bytes = row->size_bytes, measured_s = row->time_s;
    if (isnan(bytes) && isnan(measured_s) && row->bus_bytes_per_s > 0.0) {
        bytes = LARGE_BYTES;
        measured_s =
            bytes * dl_collective_bus_factor(match->request.op, row->ranks) / row->bus_bytes_per_s;
    }
    if (!(bytes >= 0.0) || !(measured_s > 0.0)) return "no size or time";
    match->request.bytes = bytes;
    match->measured_s = measured_s;
    return NULL;
}

/* NULL, or why the model cannot predict the row. */
static const char *take_request(const struct dl_coll_row *row, struct dl_coll_match *match) {
    const int library = library_of(row->library), op = op_of(row->collective);
    match->unknown = library < 0 ? row->library : op < 0 ? row->collective : NULL;
    if (library < 0) return "library: expected one of 'dlmodel list libraries'";
    if (op < 0)
        return "collective: expected p2p or send_recv, broadcast, reduce, all_reduce, "
               "reduce_scatter, all_gather, all_to_all, gather, scatter or halo";
    if (!(row->nodes >= 1.0) || !(row->ranks >= row->nodes) || fmod(row->ranks, row->nodes) != 0.0)
        return "nodes and ranks are not given";
    match->request = (struct dl_collective_request){
        .op = (enum dl_collective_op)op,
        .library = (enum dl_library)library,
        .nodes = (int64_t)row->nodes,
        .ranks_per_node = (int64_t)(row->ranks / row->nodes),
        .flows_per_adapter = 1.0,
        .device_buffers = row->buffers != NULL && strcmp(row->buffers, "device") == 0,
        .algorithm = given(row->algorithm) ? row->algorithm : NULL};
    return take_measurement(row, match);
}

struct dl_coll_match dl_coll_match(const struct dl_coll_row *row) {
    struct dl_coll_match match = {.measured_s = NAN};
    match.why = take_request(row, &match);
    if (match.why == NULL && !given(row->system)) match.why = "no system is given";
    if (match.why != NULL) return match;
    match.system = row->system;
    take_version(row->lib_version, &match);
    if (row->devices_per_process > 1.0) match.launches = (int)row->devices_per_process;
    return match;
}

const char *dl_coll_match_why(const struct dl_coll_match *match, struct dl_arena *arena) {
    return match->why == NULL || match->unknown == NULL
               ? match->why
               : dl_arena_printf(arena, "%s, got \"%.60s\"", match->why, match->unknown);
}

#define TEXT(member, need, text)                                                                   \
    {                                                                                              \
        .key = #member, .type = DL_FIELD_STRING, .offset = offsetof(struct dl_coll_row, member),   \
        .required = need, .help = text                                                             \
    }
#define NUMBER(name, member, need, most, measure, text)                                            \
    {                                                                                              \
        .key = name, .type = DL_FIELD_NUMBER, .offset = offsetof(struct dl_coll_row, member),      \
        .required = need, .max = most, .unit = measure, .help = text                               \
    }
#define COUNT(name, member, need, most, text)                                                      \
    {                                                                                              \
        .key = name, .type = DL_FIELD_INTEGER, .offset = offsetof(struct dl_coll_row, member),     \
        .required = need, .min = 1, .max = most, .unit = DL_UNIT_COUNT, .help = text               \
    }
/* as tables, nccl-tests and OSU's benchmarks write them */
static const char *const dtypes[] = {
    "float32", "float16",   "bfloat16", "float64",  "float",  "half",   "double", "int8",
    "uint8",   "int32",     "uint32",   "int64",    "uint64", "int",    "char",   "MPI_CHAR",
    "MPI_INT", "MPI_FLOAT", "fp8_e4m3", "fp8_e5m2", "f8e4m3", "f8e5m2", NULL};
/* A required column must be in the header; its cells may be empty. */
static const struct dl_field columns[] = {
    TEXT(library, true,
         "collective library: NCCL, MPI, Gloo, ... (`list libraries`), or a longer name that "
         "contains one"),
    TEXT(lib_version, true,
         "its release: 2.18.3 of NCCL, openmpi-5.0 or hpcx-2.18 of MPI; empty: the system's"),
    TEXT(
        collective, true,
        "what a name of `list collectives` has before its dot (all_reduce, p2p); send_recv is p2p"),
    TEXT(device, true, "as published"),
    TEXT(system, true, "file of data/systems; rows without one are not predicted"),
    COUNT("nodes", nodes, true, 1e7, "nodes that take part"),
    COUNT("ranks", ranks, true, 1e8, "ranks on all nodes together"),
    TEXT(network, true, "as published"),
    {.key = "dtype", .type = DL_FIELD_CHOICE, .choices = dtypes, .help = "type of the elements"},
    NUMBER("size_bytes", size_bytes, true, 1e15, DL_UNIT_BYTE, "message size"),
    NUMBER("time_us", time_s, true, 1e12, DL_UNIT_NONE, "measured time, us"),
    NUMBER("busbw_GBs", bus_bytes_per_s, true, 1e6, DL_UNIT_NONE,
           "bus bandwidth, GB/s; used where size and time are empty"),
    TEXT(buffers, false,
         "buffers passed to MPI: in host memory (also when empty) or device memory"),
    TEXT(algorithm, false, "algorithm imposed on the library; empty: the library's choice"),
    COUNT("devices_per_process", devices_per_process, false, 1e4,
          "devices that one host thread drives (nccl-tests -g N); empty: one"),
    TEXT(series, false,
         "name of the measurement campaign, where one machine and library release have several"),
    {.key = NULL},
};

const struct dl_schema dl_coll_row_schema = {
    .name = "dlmodel-collectives",
    .summary = "columns of a table of measured collectives; others are kept and ignored",
    .size = sizeof(struct dl_coll_row),
    .fields = columns,
};

/* Numbers of a table come in the units of its column names. */
static double si_factor(const char *column) {
    if (strcmp(column, "time_us") == 0) return 1e-6;
    return strcmp(column, "busbw_GBs") == 0 ? 1e9 : 1.0;
}

enum dl_code dl_coll_row_read(const struct dl_csv *csv, int row, struct dl_coll_row *out,
                              struct dl_err *err) {
    struct dl_coll_row read = {.devices_per_process = NAN};
    for (const struct dl_field *field = columns; field->key != NULL; field++) {
        const int column = dl_csv_column(csv, field->key);
        void *member = (char *)&read + field->offset;
        const char *near = column < 0 ? dl_csv_misspelt(csv, field->key) : NULL;
        if (column < 0 && field->required)
            return dl_fail_at(err, csv->name, 1, 1, field->key, "expected this column%s%.60s%s",
                              near != NULL ? "; is it '" : "", near != NULL ? near : "",
                              near != NULL ? "'?" : "");
        if (column < 0) continue;
        if (field->type == DL_FIELD_STRING) {
            *(const char **)member = csv->rows[row][column];
        } else {
            double number;
            DL_TRY(dl_csv_field(csv, row, column, field, &number, err));
            if (field->type != DL_FIELD_CHOICE) *(double *)member = number * si_factor(field->key);
        }
    }
    *out = read;
    return DL_OK;
}

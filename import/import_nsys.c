/* import_nsys.c - profiles of Nsight Systems: the database that nsys exports (--type sqlite).
 * Ranges of NVTX mark layers, calls of the CUDA runtime lead from a kernel to its range. Times are
 * in ns. Schema: the exporter's documentation (tables NVTX_EVENTS, StringIds,
 * CUPTI_ACTIVITY_KIND_RUNTIME, _KERNEL, _MEMCPY, _MEMSET). */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "import/import_trace_reader.h"

bool dl_trace_is_sqlite(const char *path) {
    static const char magic[] = "SQLite format 3";
    char found[sizeof magic] = "";
    FILE *file = fopen(path, "rb");
    if (file == NULL) return false;
    const size_t length = fread(found, 1, sizeof found, file);
    fclose(file);
    return length == sizeof magic && memcmp(found, magic, sizeof magic) == 0;
}

#ifndef DL_HAVE_SQLITE
enum dl_code dl_trace_read_sqlite(struct dl_trace_reader *r) {
    return dl_fail(r->err, DL_ERR_BACKEND,
                   "%.200s is a database of SQLite, and this dlmodel was built without it: install "
                   "libsqlite3-dev and build again, or give the table of nsys stats --report "
                   "nvtx_gpu_proj_sum --format csv",
                   r->name);
}
#else
#include <sqlite3.h>

/* Of the virtual machine: beyond 1e11 instructions (minutes) a query ends. */
enum { TURN = 1000000, MOST_TURNS = 100000 };

/* A thread's number holds the process in bits 24 to 47. */
static int64_t process_of(int64_t thread) { return thread / (1 << 24); }

struct query {
    sqlite3 *db;
    sqlite3_stmt *statement;
    struct dl_trace_reader *r;
    int64_t process; /* the others are not of this rank; 0: any */
};

static int count_turns(void *turns) { return ++*(int *)turns > MOST_TURNS; }

static enum dl_code damaged(const struct query *q) {
    return dl_fail_at(q->r->err, q->r->name, 0, 0, NULL, "expected an export of nsys: %s",
                      sqlite3_errmsg(q->db));
}

static bool has(sqlite3 *db, const char *sql, const char *table, const char *column) {
    sqlite3_stmt *statement = NULL;
    bool found = false;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) == SQLITE_OK) {
        sqlite3_bind_text(statement, 1, table, -1, SQLITE_STATIC);
        if (column != NULL) sqlite3_bind_text(statement, 2, column, -1, SQLITE_STATIC);
        found = sqlite3_step(statement) == SQLITE_ROW;
    }
    sqlite3_finalize(statement);
    return found;
}

/* A table proper: a view could compute anything. */
static bool has_table(sqlite3 *db, const char *table) {
    return has(db, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?1", table, NULL);
}

static bool has_column(sqlite3 *db, const char *table, const char *column) {
    return has(db, "SELECT 1 FROM pragma_table_info(?1) WHERE name = ?2", table, column);
}

/* Columns: start, end, thread or process, correlation, name. */
static enum dl_code read_rows(struct query *q, const char *sql, enum dl_trace_place place) {
    enum dl_code code = DL_OK;
    int got = SQLITE_ROW;
    if (sqlite3_prepare_v2(q->db, sql, -1, &q->statement, NULL) != SQLITE_OK) code = damaged(q);
    for (int64_t row = 1; code == DL_OK; row++) {
        got = sqlite3_step(q->statement);
        if (got != SQLITE_ROW) break;
        const double start_ns = sqlite3_column_double(q->statement, 0),
                     end_ns = sqlite3_column_double(q->statement, 1);
        const int64_t thread = sqlite3_column_int64(q->statement, 2);
        const unsigned char *name = sqlite3_column_text(q->statement, 4);
        if (q->process != 0 && process_of(thread) != q->process) continue;
        const struct dl_trace_record record = {
            .name = name == NULL ? "" : (const char *)name,
            .place = place,
            .thread = (uint64_t)thread,
            .ts_us = 1e-3 * start_ns,
            .dur_us = 1e-3 * (end_ns - start_ns),
            .correlation = sqlite3_column_type(q->statement, 3) == SQLITE_INTEGER
                               ? sqlite3_column_double(q->statement, 3)
                               : NAN,
            .sequence = NAN};
        code = dl_trace_add(q->r, &record, row);
    }
    if (code == DL_OK && got != SQLITE_DONE) code = damaged(q);
    sqlite3_finalize(q->statement);
    q->statement = NULL;
    return code;
}

/* Numbers of correlation are unique within a process. */
static enum dl_code find_process(struct query *q, const char *names) {
    const char *sql = dl_arena_printf(
        q->r->arena,
        "SELECT DISTINCT globalTid / 16777216 FROM (%s) WHERE name LIKE 'layer:%%' LIMIT 2", names);
    int64_t found[2] = {0, 0};
    int count = 0;
    if (sqlite3_prepare_v2(q->db, sql, -1, &q->statement, NULL) != SQLITE_OK) return damaged(q);
    while (count < 2 && sqlite3_step(q->statement) == SQLITE_ROW)
        found[count++] = sqlite3_column_int64(q->statement, 0);
    sqlite3_finalize(q->statement);
    q->statement = NULL;
    q->process = found[0];
    if (count < 2) return DL_OK;
    return dl_fail_at(q->r->err, q->r->name, 0, 0, NULL,
                      "the profile has layers of several processes; profile each rank into a file "
                      "of its own");
}

static enum dl_code read_tables(struct query *q) {
    static const char *const on_device[] = {
        "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY", "CUPTI_ACTIVITY_KIND_MEMSET"};
    sqlite3 *db = q->db;
    struct dl_arena *arena = q->r->arena;
    if (!has_table(db, "NVTX_EVENTS"))
        return dl_fail_at(q->r->err, q->r->name, 0, 0, NULL,
                          "expected an export of nsys with ranges of NVTX (table NVTX_EVENTS): "
                          "profile with --trace cuda,nvtx");
    const bool listed = has_table(db, "StringIds") && has_column(db, "NVTX_EVENTS", "textId");
    const char *names =
        listed
            ? "SELECT start, \"end\", globalTid, NULL, coalesce(text, value) AS name FROM "
              "NVTX_EVENTS LEFT JOIN StringIds ON textId = StringIds.id WHERE \"end\" IS NOT NULL"
            : "SELECT start, \"end\", globalTid, NULL, text AS name FROM NVTX_EVENTS WHERE "
              "\"end\" IS NOT NULL";
    DL_TRY(find_process(q, names));
    DL_TRY(read_rows(q, names, DL_TRACE_ON_HOST));
    if (has_table(db, "CUPTI_ACTIVITY_KIND_RUNTIME"))
        DL_TRY(read_rows(q,
                         "SELECT start, \"end\", globalTid, correlationId, '' FROM "
                         "CUPTI_ACTIVITY_KIND_RUNTIME",
                         DL_TRACE_IN_RUNTIME));
    for (int i = 0; i < 3; i++) {
        if (!has_table(db, on_device[i])) continue;
        const bool known = has_column(db, on_device[i], "globalPid");
        const int64_t process = q->process;
        if (!known) q->process = 0;
        const char *sql =
            dl_arena_printf(arena, "SELECT start, \"end\", %s, correlationId, '' FROM %s",
                            known ? "globalPid" : "0", on_device[i]);
        DL_TRY(read_rows(q, sql, DL_TRACE_ON_DEVICE));
        q->process = process;
    }
    return DL_OK;
}

enum dl_code dl_trace_read_sqlite(struct dl_trace_reader *r) {
    struct query q = {.r = r};
    int turns = 0;
    enum dl_code code = DL_OK;
    if (sqlite3_open_v2(r->name, &q.db, SQLITE_OPEN_READONLY, NULL) != SQLITE_OK) {
        code = dl_fail_at(r->err, r->name, 0, 0, NULL, "cannot read: %s",
                          q.db == NULL ? "out of memory" : sqlite3_errmsg(q.db));
    } else {
        sqlite3_db_config(q.db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(q.db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
        sqlite3_progress_handler(q.db, TURN, count_turns, &turns);
        code = read_tables(&q);
    }
    sqlite3_close(q.db);
    return code;
}
#endif

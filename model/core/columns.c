/* columns.c - see columns.h. */
#include "model/core/columns.h"

#include <string.h>

static union dl_cell cell_of(const struct dl_list_column *c, const void *facts) {
    const void *member = (const char *)facts + c->at;
    switch (c->column.type) {
    case DL_COLUMN_STRING: return (union dl_cell){.string = *(const char *const *)member};
    case DL_COLUMN_NUMBER: return (union dl_cell){.number = *(const double *)member};
    case DL_COLUMN_INTEGER:
        return (union dl_cell){.integer = c->bytes == sizeof(int) ? *(const int *)member
                                                                  : *(const int64_t *)member};
    default: return (union dl_cell){.boolean = *(const bool *)member};
    }
}

struct dl_column *dl_list_table(struct dl_table *table, struct dl_arena *arena,
                                const struct dl_list_column *list, int count, unsigned show) {
    struct dl_column *columns = dl_arena_alloc(arena, (size_t)count, sizeof *columns);
    for (int i = 0; i < count; i++) {
        columns[i] = list[i].column;
        if (list[i].show != 0 && (list[i].show & show) == 0) columns[i].heading = NULL;
    }
    dl_table_init(table, arena, columns, count);
    return columns;
}

void dl_list_add(struct dl_table *table, const struct dl_list_column *list, const void *facts) {
    union dl_cell *cells = dl_table_row(table);
    for (int i = 0; i < table->column_count; i++) cells[i] = cell_of(&list[i], facts);
}

void dl_list_json(struct dl_json_writer *w, const struct dl_list_column *list, int count,
                  const void *facts) {
    const char *open = NULL; /* the key that holds the members being written */
    for (int i = 0; i < count; i++) {
        const char *key = list[i].column.key, *dot = key != NULL ? strchr(key, '.') : NULL;
        if (key == NULL) continue;
        const size_t outer = dot != NULL ? (size_t)(dot - key) : 0;
        const union dl_cell cell = cell_of(&list[i], facts);
        if (open != NULL && (dot == NULL || strncmp(open, key, outer + 1) != 0)) {
            dl_jw_end(w);
            open = NULL;
        }
        if (dot != NULL && open == NULL) {
            dl_jw_object(w, dl_arena_strndup(w->arena, key, outer));
            open = key;
        }
        if (dot != NULL) key = dot + 1;
        switch (list[i].column.type) {
        case DL_COLUMN_STRING: dl_jw_string(w, key, cell.string); break;
        case DL_COLUMN_NUMBER: dl_jw_number(w, key, cell.number); break;
        case DL_COLUMN_INTEGER: dl_jw_integer(w, key, cell.integer); break;
        case DL_COLUMN_BOOL: dl_jw_bool(w, key, cell.boolean); break;
        }
    }
    if (open != NULL) dl_jw_end(w);
}

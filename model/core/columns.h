/* columns.h - a column is one entry of a list: key, heading, unit, help, and the member of a struct
 * that it shows. Text, CSV, JSON and `schema` read the same list. */
#ifndef DL_MODEL_CORE_COLUMNS_H
#define DL_MODEL_CORE_COLUMNS_H

#include <stddef.h>

#include "model/core/table.h"

struct dl_list_column {
    struct dl_column column;
    size_t at, bytes; /* of the member: const char *, double, int, int64_t or bool */
    const char *help; /* NULL: not in a schema */
    unsigned show;    /* text shows it only with one of these bits; 0: always */
};

/* Entries of a list; the type of the column is that of the member. SHOWN: with heading and unit in
 * text; HIDDEN: in CSV and JSON alone; a key of NULL: in text alone. */
#define DL_MEMBER(structure, member) (((structure *)0)->member)
#define DL_MEMBER_TYPE(structure, member)                                                          \
    _Generic(DL_MEMBER(structure, member), const char * : DL_COLUMN_STRING,                        \
             char * : DL_COLUMN_STRING, double : DL_COLUMN_NUMBER, int : DL_COLUMN_INTEGER,        \
             int64_t : DL_COLUMN_INTEGER, bool : DL_COLUMN_BOOL)
#define DL_SHOWN(structure, member, key, heading, unit, scale, digits, show, help)                 \
    {                                                                                              \
        {key, heading, unit, DL_MEMBER_TYPE(structure, member), scale, digits},                    \
            offsetof(structure, member), sizeof DL_MEMBER(structure, member), help, show           \
    }
#define DL_HIDDEN(structure, member, key, help)                                                    \
    DL_SHOWN(structure, member, key, NULL, NULL, 0, 0, 0, help)
#define DL_LIST(list) list, (int)(sizeof list / sizeof list[0])

/* A table with the columns of the list; its text shows those whose bits are in `show`. Returns its
 * columns, which may be adapted before the first row. */
struct dl_column *dl_list_table(struct dl_table *table, struct dl_arena *arena,
                                const struct dl_list_column *list, int count, unsigned show);
/* Appends a row with the members of `facts`. */
void dl_list_add(struct dl_table *table, const struct dl_list_column *list, const void *facts);
/* The same as members of the open JSON object; a dot in a key nests. */
void dl_list_json(struct dl_json_writer *writer, const struct dl_list_column *list, int count,
                  const void *facts);

#endif

/* framework_schema.c - the keys of a framework's file: those of framework_fields.c and those that
 * its behaviour owns. */
#include <string.h>

#include "model/framework/framework.h"
#include "model/framework/gradient_sync.h"

static bool has_key(const struct dl_field *fields, int count, const char *key) {
    for (int i = 0; i < count; i++) {
        if (strcmp(fields[i].key, key) == 0) return true;
    }
    return false;
}

/* Appends the fields that the table lacks; `own`: they are those of the framework's behaviour. */
static int append(struct dl_field *table, int count, const struct dl_field *fields, bool own) {
    for (const struct dl_field *f = fields; f != NULL && f->key != NULL; f++) {
        if (has_key(table, count, f->key)) continue;
        table[count] = *f;
        table[count].offset = own ? offsetof(struct dl_framework, own) + f->offset
                                  : offsetof(struct dl_framework, own.other_key);
        table[count].required = own && f->required;
        count++;
    }
    return count;
}

static int count_of(const struct dl_field *fields) {
    int count = 0;
    while (fields != NULL && fields[count].key != NULL) count++;
    return count;
}

const struct dl_schema *dl_framework_schema_of(const struct dl_framework_behaviour *behaviour,
                                               struct dl_arena *arena) {
    const struct dl_framework_behaviour *const *all = dl_framework_behaviours;
    int count = count_of(dl_framework_schema.fields), most = count + 1;
    for (int i = 0; all[i] != NULL; i++) most += count_of(all[i]->fields);
    struct dl_field *table = dl_arena_alloc(arena, (size_t)most, sizeof *table);
    memcpy(table, dl_framework_schema.fields, (size_t)count * sizeof *table);
    if (behaviour != NULL) count = append(table, count, behaviour->fields, true);
    for (int i = 0; all[i] != NULL; i++) count = append(table, count, all[i]->fields, false);
    struct dl_schema *schema = dl_arena_alloc(arena, 1, sizeof *schema);
    *schema = dl_framework_schema;
    schema->fields = table;
    return schema;
}

static enum dl_code unknown_behaviour(const struct dl_json *doc, const char *name,
                                      struct dl_err *err) {
    const char *names[32] = {NULL};
    for (int i = 0; dl_framework_behaviours[i] != NULL && i < 31; i++)
        names[i] = dl_framework_behaviours[i]->name;
    const char *near = dl_suggest(name, names);
    return dl_json_fail(doc, "behaviour", err, "no such behaviour '%.60s'; %s%s", name,
                        near != NULL ? "did you mean " : "",
                        near != NULL ? near : "see 'dlmodel list behaviours'");
}

enum dl_code dl_framework_load(const struct dl_json *doc, struct dl_arena *arena,
                               struct dl_framework *out, struct dl_err *err) {
    const char *name = dl_json_string(doc, "behaviour");
    const struct dl_framework_behaviour *behaviour =
        name != NULL ? dl_framework_behaviour_find(name) : NULL;
    if (name != NULL && behaviour == NULL) return unknown_behaviour(doc, name, err);
    DL_TRY(dl_json_load(doc, dl_framework_schema_of(behaviour, arena), arena, out, err));
    out->behaviour = behaviour;
    return DL_OK;
}

static const struct dl_field *find(const struct dl_field *fields, const char *key) {
    for (; fields != NULL && fields->key != NULL; fields++) {
        if (strcmp(fields->key, key) == 0) return fields;
    }
    return NULL;
}

double dl_framework_number(const struct dl_framework *framework, const char *key) {
    const char *base = (const char *)framework + offsetof(struct dl_framework, own);
    const struct dl_field *field = find(framework->behaviour->fields, key);
    if (field == NULL) {
        base = (const char *)framework;
        field = find(dl_framework_schema.fields, key);
    }
    if (field == NULL) return NAN;
    double number = NAN;
    bool flag = false;
    if (field->type == DL_FIELD_NUMBER) memcpy(&number, base + field->offset, sizeof number);
    if (field->type != DL_FIELD_BOOL) return number;
    memcpy(&flag, base + field->offset, sizeof flag);
    return flag;
}

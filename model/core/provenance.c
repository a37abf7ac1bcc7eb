/* provenance.c - see provenance.h. */
#include "model/core/provenance.h"

#include <stdio.h>
#include <string.h>

static bool has_member(const struct dl_schema *schema, const char *key) {
    for (const struct dl_field *field = schema->fields; field->key != NULL; field++)
        if (strcmp(field->key, key) == 0 ||
            (field->alias != NULL && strcmp(field->alias, key) == 0))
            return true;
    return false;
}

enum dl_code dl_provenance_check(const struct dl_map_entry *sources, int source_count,
                                 const struct dl_schema *schema, const struct dl_json *doc,
                                 const char *path, struct dl_err *err) {
    for (int i = 0; i < source_count; i++) {
        char where[192];
        snprintf(where, sizeof where, "%s%ssources.%s", path, *path != '\0' ? "." : "",
                 sources[i].key);
        if (!has_member(schema, sources[i].key))
            return dl_json_fail(doc, where, err,
                                "not a member of this object, so it cannot have a source");
        if (sources[i].text[0] == '\0' || dl_known(sources[i].number))
            return dl_json_fail(doc, where, err, "expected a key of data/SOURCES.md");
    }
    return DL_OK;
}

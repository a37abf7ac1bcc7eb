/* read_keys.c - see the header. */
#include "model/framework/read_keys.h"

#include <string.h>

#include "model/framework/gradient_sync.h"

static const struct dl_field *find(const struct dl_field *fields, const char *key) {
    for (; fields != NULL && fields->key != NULL; fields++) {
        if (strcmp(fields->key, key) == 0) return fields;
    }
    return NULL;
}

/* The field of any behaviour. */
static const struct dl_field *field_of(const char *key) {
    const struct dl_field *field = find(dl_framework_schema.fields, key);
    for (int i = 0; field == NULL && dl_framework_behaviours[i] != NULL; i++)
        field = find(dl_framework_behaviours[i]->fields, key);
    return field;
}

/* A key in full, or without its unit where no field is called so. */
struct asked {
    const char *key;
    bool in_full;
};

static struct asked asked_of(const char *key) { return (struct asked){key, field_of(key) != NULL}; }

static bool names(const struct asked *asked, const char *field) {
    const struct dl_field *f = asked->in_full ? NULL : field_of(field);
    if (f == NULL) return strcmp(asked->key, field) == 0;
    const struct dl_field one[] = {*f, {.key = NULL}};
    const struct dl_schema schema = {.fields = one};
    return dl_json_key_known(&schema, asked->key);
}

static bool reads(const struct dl_framework_behaviour *behaviour, const struct asked *asked) {
    for (const char *const *k = behaviour->keys; k != NULL && *k != NULL; k++) {
        if (names(asked, *k)) return true;
    }
    for (const struct dl_field *f = behaviour->fields; f != NULL && f->key != NULL; f++) {
        if (names(asked, f->key)) return true;
    }
    return false;
}

/* Split transformers put gradients into buckets under every behaviour. */
static bool splits_read(const struct dl_framework *framework, const struct asked *asked) {
    return (framework->splits_layers || framework->shards) && names(asked, "bucket_bytes");
}

bool dl_framework_ignores(const struct dl_framework *framework, const char *key) {
    const struct asked asked = asked_of(key);
    bool claimed = false;
    if (reads(framework->behaviour, &asked) || splits_read(framework, &asked)) return false;
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++)
        claimed = claimed || reads(dl_framework_behaviours[i], &asked);
    return claimed;
}

const char *dl_framework_key_readers(const char *key, struct dl_arena *arena) {
    const struct asked asked = asked_of(key);
    const char *all = NULL;
    for (int i = 0; dl_framework_behaviours[i] != NULL; i++) {
        const struct dl_framework_behaviour *b = dl_framework_behaviours[i];
        if (!reads(b, &asked)) continue;
        all = all == NULL ? b->name : dl_arena_printf(arena, "%s, %s", all, b->name);
    }
    return all;
}

enum dl_code dl_framework_keys_check(const struct dl_framework *framework,
                                     const struct dl_json *doc, struct dl_arena *arena,
                                     struct dl_err *err) {
    const struct dl_schema *all = dl_framework_schema_of(NULL, arena);
    for (const struct dl_field *f = all->fields; f->key != NULL; f++) {
        if (dl_json_has(doc, f->key) && dl_framework_ignores(framework, f->key))
            return dl_json_fail(doc, f->key, err, "behaviour %s does not read it, only %s",
                                framework->behaviour->name,
                                dl_framework_key_readers(f->key, arena));
    }
    for (int r = 0; r < framework->release_count; r++) {
        const struct dl_framework_release *release = &framework->releases[r];
        for (int i = 0; i < release->set_count; i++) {
            const char *key = release->set[i].key,
                       *place = dl_arena_printf(arena, "releases[%d].set.%s", r, key);
            if (!dl_json_key_known(all, key))
                return dl_json_fail(doc, place, err,
                                    "release %s: no member of a framework has this name",
                                    release->name);
            if (dl_framework_ignores(framework, key))
                return dl_json_fail(doc, place, err,
                                    "release %s: behaviour %s does not read it, only %s",
                                    release->name, framework->behaviour->name,
                                    dl_framework_key_readers(key, arena));
        }
    }
    return DL_OK;
}

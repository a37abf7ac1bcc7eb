/* json_extend.c - a document that starts from another one. */
#include <string.h>

#include "model/core/json_node.h"

static bool is_listed(const char *const *list, const char *key) {
    for (; list != NULL && *list != NULL; list++)
        if (strcmp(*list, key) == 0) return true;
    return false;
}

static void append(struct dl_json_node *object, struct dl_json_node *member) {
    struct dl_json_node **link = &object->child;
    while (*link != NULL) link = &(*link)->next;
    member->next = NULL;
    *link = member;
    object->child_count++;
}

/* A copy with its key, without a position: that is one of the other text. */
static struct dl_json_node *copy(struct dl_arena *arena, const struct dl_json_node *node) {
    struct dl_json_node *made = dl_arena_alloc(arena, 1, sizeof *made);
    *made = *node;
    made->place = made->key_place = DL_NO_PLACE;
    made->child = NULL;
    made->child_count = 0;
    for (const struct dl_json_node *child = node->child; child != NULL; child = child->next)
        append(made, copy(arena, child));
    return made;
}

/* The member of an object, made where it is missing. */
static struct dl_json_node *object_in(struct dl_arena *arena, struct dl_json_node *parent,
                                      const char *key) {
    struct dl_json_node *found = dl_json_member(parent, key, strlen(key));
    if (found != NULL) return found;
    found = dl_arena_alloc(arena, 1, sizeof *found);
    *found = (struct dl_json_node){.kind = DL_JSON_OBJECT, .key = key};
    found->place = found->key_place = DL_NO_PLACE;
    append(parent, found);
    return found;
}

/* An object with numbers of its own has other sources than its base. */
static bool has_own_number(const struct dl_json_node *object) {
    for (const struct dl_json_node *m = object->child; m != NULL; m = m->next)
        if (m->kind == DL_JSON_NUMBER && strcmp(m->key, "version") != 0) return true;
    return false;
}

static void name_source(struct dl_arena *arena, struct dl_json_node *object, const char *key,
                        const struct dl_json_node *source) {
    struct dl_json_node *sources = object_in(arena, object, "sources"), *entry;
    if (sources->kind != DL_JSON_OBJECT || dl_json_member(sources, key, strlen(key)) != NULL)
        return;
    entry = copy(arena, source);
    entry->key = key;
    append(sources, entry);
}

static void extend(struct dl_arena *arena, struct dl_json_node *object,
                   const struct dl_json_node *base, const char *const *without) {
    const struct dl_json_node *source = dl_json_get(base, "source");
    const bool own = has_own_number(object);
    struct dl_json_node *sources = dl_json_member(object, "sources", 7);
    /* a number of its own has not the source of the base's */
    const struct dl_json_node *names = dl_json_get(base, "sources");

    for (const struct dl_json_node *m = names != NULL ? names->child : NULL; m != NULL;
         m = m->next) {
        if (dl_json_member(object, m->key, strlen(m->key)) != NULL) continue;
        sources = object_in(arena, object, "sources");
        if (sources->kind == DL_JSON_OBJECT &&
            dl_json_member(sources, m->key, strlen(m->key)) == NULL)
            append(sources, copy(arena, m));
    }
    for (const struct dl_json_node *m = base->child; m != NULL; m = m->next) {
        struct dl_json_node *mine = dl_json_member(object, m->key, strlen(m->key));
        if (is_listed(without, m->key) || strcmp(m->key, "sources") == 0) continue;
        if (own && strcmp(m->key, "source") == 0) continue;
        if (mine == NULL) {
            append(object, copy(arena, m));
            if (own && source != NULL && m->kind == DL_JSON_NUMBER)
                name_source(arena, object, m->key, source);
        } else if (mine->kind == DL_JSON_OBJECT && m->kind == DL_JSON_OBJECT) {
            extend(arena, mine, m, NULL);
        }
    }
}

void dl_json_extend(struct dl_json *doc, const struct dl_json *base, const char *const *without) {
    if (doc->root->kind == DL_JSON_OBJECT && base->root->kind == DL_JSON_OBJECT)
        extend(doc->arena, doc->root, base->root, without);
}

void dl_json_remove(struct dl_json *doc, const char *key) {
    struct dl_json_node **link = &doc->root->child;
    for (; *link != NULL; link = &(*link)->next) {
        if ((*link)->key == NULL || strcmp((*link)->key, key) != 0) continue;
        *link = (*link)->next;
        doc->root->child_count--;
        return;
    }
}

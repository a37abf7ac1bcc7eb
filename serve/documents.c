/* documents.c - reads the user's files for the workers. */
#include "serve/documents.h"

#include "model/core/file.h"
#include "model/core/json.h"

static const char PROFILE[] = "local", SITE[] = "site.json";

static enum dl_code add(struct dl_documents *d, const char *name, const char *path,
                        struct dl_arena *scratch, struct dl_err *err) {
    struct dl_json *doc;
    char *text;
    size_t length;
    DL_TRY(dl_file_read_regular(path, DL_JSON_BYTES, &d->arena, &text, &length, err));
    DL_TRY(dl_json_parse(path, text, length, scratch, &doc, err));
    d->list[d->count++] = (struct dl_attachment){.name = name, .text = text, .length = length};
    return DL_OK;
}

static enum dl_code read_all(const struct dl_context *context, const char *site,
                             struct dl_documents *d, struct dl_arena *scratch, struct dl_err *err) {
    const struct dl_system *system;
    if (dl_data_has_profile(&context->data)) {
        DL_TRY(add(d, PROFILE, context->data.local_profile, scratch, err));
        DL_TRY(dl_data_system(&context->data, PROFILE, scratch, &system, err));
    }
    d->site = site != NULL ? site : context->site;
    if (d->site == NULL || !dl_data_is_path(d->site)) return DL_OK;
    DL_TRY(add(d, SITE, d->site, scratch, err));
    d->site = SITE;
    return DL_OK;
}

enum dl_code dl_documents_read(const struct dl_context *context, const char *site,
                               struct dl_documents *out, struct dl_err *err) {
    struct dl_arena scratch = {0};
    *out = (struct dl_documents){.count = 0};
    const enum dl_code code = read_all(context, site, out, &scratch, err);
    dl_arena_free(&scratch);
    if (code != DL_OK) dl_arena_free(&out->arena);
    return code;
}

void dl_documents_apply(const struct dl_documents *documents, struct dl_context *context) {
    context->data.local_profile = NULL;
    context->profile_path = NULL;
    context->site = documents->site;
    context->data.attachments = documents->list;
    context->data.attachment_count = documents->count;
}

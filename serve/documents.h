/* documents.h - the user's files that requests depend on: the calibrated profile ("local") and the
 * site of Slurm scripts. They are read before workers enter the sandbox, which cannot open them; no
 * answer contains their paths. */
#ifndef DL_SERVE_DOCUMENTS_H
#define DL_SERVE_DOCUMENTS_H

#include "model/catalog/command.h"

enum { DL_MAX_DOCUMENTS = 2 };

struct dl_documents {
    struct dl_arena arena;
    struct dl_attachment list[DL_MAX_DOCUMENTS];
    int count;
    const char *site; /* name of a site or of the document that describes it; NULL: none */
};

/* site: NAME or FILE of --site; NULL: the user's own. Fails where a file exists but cannot be read
 * or, for the profile, used: the message names the file. On success dl_arena_free(&out->arena)
 * releases the texts. */
enum dl_code dl_documents_read(const struct dl_context *context, const char *site,
                               struct dl_documents *out, struct dl_err *err);

/* Makes a worker's context use the documents in place of the files. */
void dl_documents_apply(const struct dl_documents *documents, struct dl_context *context);

#endif

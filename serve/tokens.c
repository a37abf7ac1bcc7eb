/* tokens.c - reads the file of tokens. */
#include "serve/tokens.h"

#include <string.h>
#include <sys/stat.h>

#include "model/core/file.h"

enum dl_code dl_tokens_read(const char *path, struct dl_arena *arena, const char **tokens,
                            int *count, struct dl_err *err) {
    enum { MAX_BYTES = 1 << 16, SHORTEST = 16 };
    char *text = NULL, *next = NULL;
    size_t length = 0;
    struct stat status;
    int line_number = 0;
    *count = 0;
    if (path == NULL) return DL_OK;
    if (stat(path, &status) == 0 && (status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
        return dl_fail_at(err, path, 0, 0, NULL,
                          "expected a file that only its owner can read: chmod 600");
    DL_TRY(dl_file_read(path, MAX_BYTES, arena, &text, &length, err));
    for (char *line = text; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        line_number++;
        line[strcspn(line, "# \t\r")] = '\0';
        if (line[0] == '\0') continue;
        if (strlen(line) < SHORTEST)
            return dl_fail_at(err, path, line_number, 1, NULL,
                              "expected a token of at least %d characters", SHORTEST);
        if (*count == DL_MAX_TOKENS)
            return dl_fail_at(err, path, line_number, 1, NULL, "expected at most %d tokens",
                              DL_MAX_TOKENS);
        tokens[(*count)++] = line;
    }
    return *count > 0 ? DL_OK : dl_fail_at(err, path, 0, 0, NULL, "expected a token a line");
}

/* replay_main.c - feeds files to a fuzz entry where there is no libFuzzer: each argument is a file
 * or a directory of files. Exit status 1 when a file could not be read or there was none.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);

/* libFuzzer's, which mutators of the targets call; nothing is mutated here. */
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) {
    (void)data;
    return size < max_size ? size : max_size;
}

static int replay_file(const char *path) {
    FILE *file = fopen(path, "rb");
    uint8_t *data = NULL;
    size_t size = 0, capacity = 0;

    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    while (!feof(file) && !ferror(file)) {
        if (size == capacity) {
            uint8_t *grown = realloc(data, capacity = capacity * 2 + 4096);

            if (grown == NULL) break;
            data = grown;
        }
        size += fread(data + size, 1, capacity - size, file);
    }
    fclose(file);
    /* A copy of the exact size, so that a sanitizer sees reads past the end. */
    uint8_t *exact = malloc(size > 0 ? size : 1);

    if (exact != NULL) {
        if (size > 0) memcpy(exact, data, size);
        LLVMFuzzerTestOneInput(exact, size);
    }
    free(exact);
    free(data);
    return 1;
}

/* How many files were fed, -1 on failure. */
static int replay(const char *path) {
    struct stat info;
    struct dirent *entry;
    DIR *directory;
    int count = 0;

    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) return replay_file(path);
    directory = opendir(path);
    if (directory == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    while (count >= 0 && (entry = readdir(directory)) != NULL) {
        char full[4096];
        int fed;

        if (entry->d_name[0] == '.') continue;
        snprintf(full, sizeof full, "%s/%s", path, entry->d_name);
        fed = replay(full);
        count = fed < 0 ? -1 : count + fed;
    }
    closedir(directory);
    return count;
}

int main(int argc, char **argv) {
    int count = 0;

    for (int i = 1; i < argc; i++) {
        int fed = replay(argv[i]);

        if (fed < 0) return 1;
        count += fed;
    }
    printf("%d inputs\n", count);
    return count > 0 ? 0 : 1;
}

/* utf8.c - see the header. */
#include "predict/output/utf8.h"

int dl_utf8_bytes(const unsigned char *s) {
    const int length = s[0] < 0x80                   ? 1
                       : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                       : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                       : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                     : 0;
    for (int i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
    }
    return length;
}

/* utf8.h - characters of texts that others wrote. */
#ifndef DL_PREDICT_OUTPUT_UTF8_H
#define DL_PREDICT_OUTPUT_UTF8_H

/* Bytes of the UTF-8 character at s, 1 to 4; 0: the bytes there form none. */
int dl_utf8_bytes(const unsigned char *s);

#endif

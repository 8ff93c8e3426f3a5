#define _POSIX_C_SOURCE 200809L
#include "shardtool_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_DEPTH 127 /* of arrays and objects in a manifest; a dataset itself needs four */
#define LENGTH(array) (sizeof(array) / sizeof *(array))

typedef struct {
    const uint8_t *data;
    size_t size;
    int open;
} file_map;

typedef struct {
    shardtool_bytes name;
    int kind, element, checked;
    struct {
        uint64_t offset, length;
        uint32_t crc;
    } part[2];
} column;

typedef struct {
    file_map map;
    uint64_t records;
    size_t count;
    column *columns, *record_offset, *image_offset, *image_length, *key;
    int open;
} shard_index;

typedef struct shardtool_shard {
    const char *file;
    char *index_file;
    uint64_t records, bytes, index_bytes, first;
    uint32_t crc, index_crc;
    file_map data;
    shard_index index;
} shard;

typedef struct {
    const char *name;
    shard *shards;
    size_t count;
    uint64_t records;
} split;

struct shardtool_dataset {
    int folder;
    uint32_t crc_table[8][256];
    char *strings; /* those of the manifest, each ending in NUL */
    shardtool_bytes image, label;
    int64_t label_offset;
    int opaque;
    shardtool_bytes *classes;
    size_t class_count;
    split *splits;
    size_t split_count;
};

static int fail(shardtool_error *error, const char *name, const char *file, int64_t record, const char *format, ...)
{
    va_list arguments;
    error->name = name;
    snprintf(error->file, sizeof error->file, "%s", file);
    error->record = record;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return -1;
}

/* --- bytes --- */

static uint16_t u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t u32(const uint8_t *p) { return u16(p) | (uint32_t)u16(p + 2) << 16; }
static uint64_t u64(const uint8_t *p) { return u32(p) | (uint64_t)u32(p + 4) << 32; }

static int64_t as_i64(uint64_t word)
{
    return word <= INT64_MAX ? (int64_t)word : -(int64_t)(UINT64_MAX - word) - 1;
}

static float as_f32(uint32_t word)
{
    float value;
    memcpy(&value, &word, 4);
    return value;
}

static int equal(shardtool_bytes a, shardtool_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

static int compare(const void *left, const void *right)
{
    const shardtool_bytes *a = left, *b = right;
    size_t size = a->size < b->size ? a->size : b->size;
    int order = size ? memcmp(a->data, b->data, size) : 0;
    return order ? order : (a->size > b->size) - (a->size < b->size);
}

static shardtool_bytes text(const char *string)
{
    shardtool_bytes bytes = {(const uint8_t *)string, strlen(string)};
    return bytes;
}

/* Sorts the names. Returns 1 if one occurs twice. */
static int twice(shardtool_bytes *names, size_t count)
{
    if (count)
        qsort(names, count, sizeof *names, compare);
    for (size_t i = 1; i < count; i++)
        if (equal(names[i - 1], names[i]))
            return 1;
    return 0;
}

static int is_utf8(const uint8_t *p, size_t size)
{
    for (const uint8_t *end = p + size; p < end;) {
        uint32_t code = *p++;
        int more = code < 0x80 ? 0 : code < 0xc2 ? -1 : code < 0xe0 ? 1 : code < 0xf0 ? 2 : code < 0xf5 ? 3 : -1;
        if (more < 0 || end - p < more)
            return 0;
        code &= more ? 0x3fu >> more : 0x7fu;
        for (int i = 0; i < more; i++, p++) {
            if ((*p & 0xc0) != 0x80)
                return 0;
            code = code << 6 | (*p & 0x3f);
        }
        if ((more == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
            (more == 3 && (code < 0x10000 || code > 0x10ffff)))
            return 0;
    }
    return 1;
}

/* --- CRC32C: eight bytes per step --- */

static void fill_crc_table(uint32_t table[8][256])
{
    for (uint32_t n = 0; n < 256; n++) {
        uint32_t crc = n;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc >> 1) ^ (crc & 1 ? 0x82f63b78u : 0);
        table[0][n] = crc;
    }
    for (int i = 1; i < 8; i++)
        for (int n = 0; n < 256; n++)
            table[i][n] = table[0][table[i - 1][n] & 255] ^ (table[i - 1][n] >> 8);
}

/* `crc` is that of the preceding bytes, 0 at the start. */
static uint32_t crc32c(const shardtool_dataset *dataset, uint32_t crc, const uint8_t *p, uint64_t size)
{
    const uint32_t(*t)[256] = dataset->crc_table;
    crc = ~crc;
    for (; size >= 8; p += 8, size -= 8) {
        uint32_t low = crc ^ u32(p), high = u32(p + 4);
        crc = t[7][low & 255] ^ t[6][low >> 8 & 255] ^ t[5][low >> 16 & 255] ^ t[4][low >> 24] ^ t[3][high & 255] ^
              t[2][high >> 8 & 255] ^ t[1][high >> 16 & 255] ^ t[0][high >> 24];
    }
    for (; size; p++, size--)
        crc = t[0][(crc ^ *p) & 255] ^ (crc >> 8);
    return ~crc;
}

static uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

uint32_t shardtool_crc32c(const shardtool_dataset *dataset, shardtool_bytes bytes)
{
    return crc32c(dataset, 0, bytes.data, bytes.size);
}

/* --- JSON: a strict parser to a flat array of nodes, each followed by its contents --- */

typedef struct {
    char type; /* { [ " t f n, i for an integer, d for another number */
    size_t start, length; /* of a string in `strings`, of a number in `text` */
    size_t next;          /* the node after this one and its contents */
} node;

typedef struct {
    const char *text, *at, *end;
    char *strings;
    size_t used, count, capacity;
    node *nodes;
    int out_of_memory;
} json;

static size_t new_node(json *j, char type)
{
    if (j->count == j->capacity) {
        size_t capacity = j->capacity ? 2 * j->capacity : 64;
        node *nodes = realloc(j->nodes, capacity * sizeof *nodes);
        if (!nodes) {
            j->out_of_memory = 1;
            return SIZE_MAX;
        }
        j->nodes = nodes;
        j->capacity = capacity;
    }
    memset(&j->nodes[j->count], 0, sizeof *j->nodes);
    j->nodes[j->count].type = type;
    return j->count++;
}

static int peek(const json *j) { return j->at < j->end ? (unsigned char)*j->at : -1; }

static int take(json *j, char c)
{
    if (peek(j) != c)
        return 0;
    j->at++;
    return 1;
}

static void skip_space(json *j)
{
    while (peek(j) == ' ' || peek(j) == '\t' || peek(j) == '\n' || peek(j) == '\r')
        j->at++;
}

static int take_hex(json *j, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        int c = peek(j);
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return 0;
        *code = *code << 4 | (uint32_t)digit;
    }
    return 1;
}

static void put_utf8(json *j, uint32_t code)
{
    char *out = j->strings + j->used;
    int more = code < 0x80 ? 0 : code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    for (int i = more; i > 0; i--, code >>= 6)
        out[i] = (char)(0x80 | (code & 0x3f));
    out[0] = (char)(lead[more] | code);
    j->used += (size_t)more + 1;
}

static int take_string(json *j)
{
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    size_t at = new_node(j, '"');
    if (at == SIZE_MAX || !take(j, '"'))
        return 0;
    size_t start = j->used;
    while (!take(j, '"')) {
        int c = peek(j);
        if (c < 0x20) /* or the end of the text */
            return 0;
        j->at++;
        if (c != '\\') {
            j->strings[j->used++] = (char)c;
            continue;
        }
        c = peek(j);
        if (c < 0)
            return 0;
        j->at++;
        const char *escape = c ? strchr(escapes, c) : NULL;
        if (escape) {
            j->strings[j->used++] = meant[escape - escapes];
            continue;
        }
        uint32_t code, low;
        if (c != 'u' || !take_hex(j, &code) || (code >= 0xdc00 && code < 0xe000))
            return 0;
        if (code >= 0xd800 && code < 0xdc00) {
            if (!take(j, '\\') || !take(j, 'u') || !take_hex(j, &low) || low < 0xdc00 || low >= 0xe000)
                return 0;
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        put_utf8(j, code);
    }
    j->nodes[at].start = start;
    j->nodes[at].length = j->used - start;
    j->strings[j->used++] = 0;
    return 1;
}

static int take_digits(json *j)
{
    const char *start = j->at;
    while (peek(j) >= '0' && peek(j) <= '9')
        j->at++;
    return j->at > start;
}

static int take_number(json *j)
{
    const char *start = j->at;
    int integer = 1;
    take(j, '-');
    if (!take(j, '0') && !take_digits(j))
        return 0;
    if (take(j, '.')) {
        integer = 0;
        if (!take_digits(j))
            return 0;
    }
    if (take(j, 'e') || take(j, 'E')) {
        integer = 0;
        if (!take(j, '+'))
            take(j, '-');
        if (!take_digits(j))
            return 0;
    }
    size_t length = (size_t)(j->at - start);
    if (length > 20 || (length == 2 && memcmp(start, "-0", 2) == 0))
        integer = 0;
    size_t at = new_node(j, integer ? 'i' : 'd');
    if (at == SIZE_MAX)
        return 0;
    j->nodes[at].start = (size_t)(start - j->text);
    j->nodes[at].length = length;
    return 1;
}

static int take_word(json *j, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(j->end - j->at) < length || memcmp(j->at, word, length) != 0)
        return 0;
    j->at += length;
    return new_node(j, word[0]) != SIZE_MAX;
}

static int take_value(json *j, int depth);

static int take_contents(json *j, int depth)
{
    int object = *j->at == '{';
    char close = object ? '}' : ']';
    if (depth == MAX_DEPTH || new_node(j, *j->at) == SIZE_MAX)
        return 0;
    j->at++;
    skip_space(j);
    if (take(j, close))
        return 1;
    for (;;) {
        if (object) {
            size_t name = j->count;
            if (!take_string(j))
                return 0;
            j->nodes[name].next = j->count;
            skip_space(j);
            if (!take(j, ':'))
                return 0;
            skip_space(j);
        }
        if (!take_value(j, depth + 1))
            return 0;
        skip_space(j);
        if (take(j, close))
            return 1;
        if (!take(j, ','))
            return 0;
        skip_space(j);
    }
}

static int take_value(json *j, int depth)
{
    size_t at = j->count;
    int c = peek(j), good;
    if (c == '{' || c == '[')
        good = take_contents(j, depth);
    else if (c == '"')
        good = take_string(j);
    else if (c == 't' || c == 'f' || c == 'n')
        good = take_word(j, c == 't' ? "true" : c == 'f' ? "false" : "null");
    else
        good = take_number(j);
    if (good)
        j->nodes[at].next = j->count;
    return good;
}

static shardtool_bytes string_of(const json *j, size_t at)
{
    shardtool_bytes bytes = {(const uint8_t *)j->strings + j->nodes[at].start, j->nodes[at].length};
    return bytes;
}

/* Parses the digits of an integer. Returns 0 if they do not fit. */
static int magnitude(const json *j, size_t at, int *negative, uint64_t *value)
{
    const char *p = j->text + j->nodes[at].start, *end = p + j->nodes[at].length;
    *value = 0;
    *negative = *p == '-';
    for (p += *negative; p < end; p++) {
        uint64_t digit = (uint64_t)(*p - '0');
        if (*value > (UINT64_MAX - digit) / 10)
            return 0;
        *value = *value * 10 + digit;
    }
    return 1;
}

/* --- manifest --- */

#define MANIFEST "dataset.json"

typedef struct {
    const char *name;
    char type; /* s string, 0 string or null, a array, i i64, u u64, c eight hex digits */
    int optional;
} member;

static const member IDENTITY[] = {{"format", 's', 1}, {"version", 's', 1}};
static const member MEMBERS[] = {{"format", 's', 0},       {"version", 's', 0},  {"created_by", 's', 1},
                                 {"image", '0', 1},        {"label", '0', 1},    {"label_offset", 'i', 0},
                                 {"features", 'a', 0},     {"classes", 'a', 0},  {"splits", 'a', 0},
                                 {"crc32c", 'c', 0}};
static const member FEATURE[] = {{"name", 's', 0}, {"type", 's', 0}};
static const member SPLIT[] = {{"name", 's', 0}, {"shards", 'a', 0}};
static const member SHARD[] = {{"file", 's', 0},   {"records", 'u', 0},     {"bytes", 'u', 0},
                               {"crc32c", 'c', 0}, {"index_bytes", 'u', 0}, {"index_crc32c", 'c', 0}};

static int parse_hex8(const uint8_t *p, size_t size, uint32_t *value)
{
    *value = 0;
    for (size_t i = 0; i < size; i++) {
        int digit = p[i] >= '0' && p[i] <= '9' ? p[i] - '0' : p[i] >= 'a' && p[i] <= 'f' ? p[i] - 'a' + 10 : -1;
        if (digit < 0)
            return 0;
        *value = *value << 4 | (uint32_t)digit;
    }
    return size == 8;
}

static int is_type(const json *j, size_t at, char type)
{
    char found = j->nodes[at].type;
    int negative;
    uint64_t value;
    uint32_t crc;
    switch (type) {
    case 's':
        return found == '"';
    case '0':
        return found == '"' || found == 'n';
    case 'a':
        return found == '[';
    case 'i':
        return found == 'i' && magnitude(j, at, &negative, &value) && value <= (uint64_t)INT64_MAX + (negative != 0);
    case 'u':
        return found == 'i' && magnitude(j, at, &negative, &value) && !negative;
    default:
        return found == '"' && parse_hex8(string_of(j, at).data, string_of(j, at).size, &crc);
    }
}

/* The values of an object's members; 0 for those that are absent, as no value is node 0. */
static int take_members(const json *j, size_t object, const member *types, size_t count, size_t *values,
                        shardtool_error *error)
{
    memset(values, 0, count * sizeof *values);
    if (j->nodes[object].type != '{')
        return fail(error, "ManifestSyntax", MANIFEST, -1, "expected an object");
    for (size_t at = object + 1; at < j->nodes[object].next; at = j->nodes[at + 1].next)
        for (size_t i = 0; i < count; i++) {
            if (!equal(string_of(j, at), text(types[i].name)))
                continue;
            if (values[i])
                return fail(error, "ManifestSyntax", MANIFEST, -1, "member \"%s\" occurs twice", types[i].name);
            if (!is_type(j, at + 1, types[i].type))
                return fail(error, "ManifestSyntax", MANIFEST, -1, "member \"%s\" is of another type", types[i].name);
            values[i] = at + 1;
        }
    for (size_t i = 0; i < count; i++)
        if (!values[i] && !types[i].optional)
            return fail(error, "ManifestSyntax", MANIFEST, -1, "member \"%s\" is absent", types[i].name);
    return 0;
}

static size_t count_items(const json *j, size_t array)
{
    size_t count = 0;
    for (size_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next)
        count++;
    return count;
}

static uint64_t u64_of(const json *j, size_t at)
{
    int negative;
    uint64_t value;
    magnitude(j, at, &negative, &value);
    return negative ? 0 - value : value;
}

static uint32_t crc_of(const json *j, size_t at)
{
    uint32_t crc;
    parse_hex8(string_of(j, at).data, string_of(j, at).size, &crc);
    return crc;
}

static const char *chars_of(const json *j, size_t at) { return j->strings + j->nodes[at].start; }

/* The major version is the part before the first full stop. */
static int is_version_1(shardtool_bytes version)
{
    return version.size >= 1 && version.data[0] == '1' && (version.size == 1 || version.data[1] == '.');
}

static int check_end(shardtool_dataset *dataset, const uint8_t *data, size_t size, shardtool_error *error)
{
    static const char before[] = "\n  \"crc32c\": \"", after[] = "\"\n}\n";
    const size_t head = sizeof before - 1, tail = sizeof after - 1;
    uint32_t expected;
    if (size < head + 8 + tail)
        return fail(error, "ManifestCrc", MANIFEST, -1, "the file does not end in its CRC");
    size_t digits = size - tail - 8;
    if (memcmp(data + digits - head, before, head) != 0 || memcmp(data + size - tail, after, tail) != 0 ||
        !parse_hex8(data + digits, 8, &expected))
        return fail(error, "ManifestCrc", MANIFEST, -1, "the file does not end in its CRC");
    uint32_t found = crc32c(dataset, 0, data, digits);
    found = crc32c(dataset, found, (const uint8_t *)"00000000", 8);
    found = crc32c(dataset, found, data + digits + 8, tail);
    if (found != expected)
        return fail(error, "ManifestCrc", MANIFEST, -1, "expected %08x, found %08x", expected, found);
    return 0;
}

static int out_of_memory(shardtool_error *error) { return fail(error, "Memory", "", -1, "out of memory"); }

static int take_splits(shardtool_dataset *dataset, const json *j, size_t array, shardtool_error *error)
{
    size_t count = count_items(j, array), value[LENGTH(SHARD)], number = 0;
    dataset->splits = calloc(count + 1, sizeof *dataset->splits);
    if (!dataset->splits)
        return out_of_memory(error);
    for (size_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next) {
        if (take_members(j, at, SPLIT, LENGTH(SPLIT), value, error))
            return -1;
        split *s = &dataset->splits[number++];
        s->name = chars_of(j, value[0]);
        size_t shards = value[1];
        s->shards = calloc(count_items(j, shards) + 1, sizeof *s->shards);
        if (!s->shards)
            return out_of_memory(error);
        dataset->split_count = number;
        for (size_t item = shards + 1; item < j->nodes[shards].next; item = j->nodes[item].next) {
            if (take_members(j, item, SHARD, LENGTH(SHARD), value, error))
                return -1;
            shard *h = &s->shards[s->count++];
            h->file = chars_of(j, value[0]);
            h->records = u64_of(j, value[1]);
            h->bytes = u64_of(j, value[2]);
            h->crc = crc_of(j, value[3]);
            h->index_bytes = u64_of(j, value[4]);
            h->index_crc = crc_of(j, value[5]);
            /* A NUL inside the name is invalid; the check of values detects it by this length. */
            size_t size = j->nodes[value[0]].length;
            if (strlen(h->file) != size)
                h->file = "";
            h->index_file = malloc(size + sizeof "_index/.index");
            if (!h->index_file)
                return out_of_memory(error);
            sprintf(h->index_file, "_index/%s.index", h->file);
        }
    }
    return 0;
}

static int check_ascending(const char *what, shardtool_bytes before, shardtool_bytes name, shardtool_error *error)
{
    if (before.data && compare(&before, &name) >= 0)
        return fail(error, "ManifestValue", MANIFEST, -1, "%s are not in strictly ascending byte order", what);
    return 0;
}

static int is_split_name(const char *name, size_t size)
{
    if (size < 1 || size > 100 || name[0] == '.' || name[0] == '-')
        return 0;
    for (size_t i = 0; i < size; i++) {
        char c = name[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
              c == '-'))
            return 0;
    }
    return 1;
}

static int is_plain_file_name(const char *file)
{
    if (!*file || strcmp(file, ".") == 0 || strcmp(file, "..") == 0)
        return 0;
    for (const unsigned char *p = (const unsigned char *)file; *p; p++) /* U+0080 to U+009F are c2 80 to c2 9f */
        if (*p < 0x20 || *p == '/' || *p == '\\' || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
            return 0;
    return 1;
}

static int check_splits(shardtool_dataset *dataset, const json *j, size_t array, shardtool_error *error)
{
    shardtool_bytes before = {NULL, 0};
    size_t shards = 0, i = 0;
    for (size_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next, i++) {
        size_t value[LENGTH(SPLIT)];
        split *s = &dataset->splits[i];
        if (take_members(j, at, SPLIT, LENGTH(SPLIT), value, error))
            return -1;
        shardtool_bytes name = string_of(j, value[0]);
        if (!is_split_name((const char *)name.data, name.size))
            return fail(error, "ManifestValue", MANIFEST, -1, "\"%s\" is not a valid split name", s->name);
        if (check_ascending("splits", before, name, error))
            return -1;
        before = name;
        for (size_t k = 0; k < s->count; k++) {
            shard *h = &s->shards[k];
            if (!is_plain_file_name(h->file))
                return fail(error, "ManifestValue", MANIFEST, -1, "\"%s\" is not a plain file name", h->file);
            h->first = s->records;
            if (h->records >= ((uint64_t)1 << 63) - s->records)
                return fail(error, "ManifestValue", MANIFEST, -1, "split \"%s\" has too many records", s->name);
            s->records += h->records;
        }
        shards += s->count;
    }
    shardtool_bytes *files = calloc(shards + 1, sizeof *files);
    if (!files)
        return out_of_memory(error);
    shards = 0;
    for (i = 0; i < dataset->split_count; i++)
        for (size_t k = 0; k < dataset->splits[i].count; k++)
            files[shards++] = text(dataset->splits[i].shards[k].file);
    int repeated = twice(files, shards);
    free(files);
    if (repeated)
        return fail(error, "ManifestValue", MANIFEST, -1, "a shard is listed twice");
    return 0;
}

static int check_features(const json *j, size_t array, int values, shardtool_error *error)
{
    shardtool_bytes before = {NULL, 0};
    for (size_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next) {
        size_t value[LENGTH(FEATURE)];
        if (take_members(j, at, FEATURE, LENGTH(FEATURE), value, error))
            return -1;
        shardtool_bytes name = string_of(j, value[0]), type = string_of(j, value[1]);
        if (!equal(type, text("bytes")) && !equal(type, text("float")) && !equal(type, text("int64")))
            return fail(error, "ManifestSyntax", MANIFEST, -1, "the type of a feature is not bytes, float or int64");
        if (values && check_ascending("features", before, name, error))
            return -1;
        before = name;
    }
    return 0;
}

/* All types are checked before any value, as the specification requires. */
static int take_manifest(shardtool_dataset *dataset, const json *j, shardtool_error *error)
{
    size_t value[LENGTH(MEMBERS)];
    if (take_members(j, 0, IDENTITY, LENGTH(IDENTITY), value, error))
        return -1;
    if (!value[0] || !equal(string_of(j, value[0]), text("shardtool")) || !value[1] ||
        !is_version_1(string_of(j, value[1])))
        return fail(error, "ManifestVersion", MANIFEST, -1, "expected format shardtool and version 1");
    if (take_members(j, 0, MEMBERS, LENGTH(MEMBERS), value, error))
        return -1;
    if (value[3] && j->nodes[value[3]].type == '"')
        dataset->image = string_of(j, value[3]);
    if (value[4] && j->nodes[value[4]].type == '"')
        dataset->label = string_of(j, value[4]);
    dataset->label_offset = as_i64(u64_of(j, value[5]));
    dataset->opaque = count_items(j, value[6]) == 0;

    dataset->class_count = count_items(j, value[7]);
    dataset->classes = calloc(dataset->class_count + 1, sizeof *dataset->classes);
    shardtool_bytes *sorted = calloc(dataset->class_count + 1, sizeof *sorted);
    if (!dataset->classes || !sorted) {
        free(sorted);
        return out_of_memory(error);
    }
    size_t i = 0;
    int strings = 1;
    for (size_t at = value[7] + 1; at < j->nodes[value[7]].next; at = j->nodes[at].next, i++) {
        strings = strings && j->nodes[at].type == '"';
        sorted[i] = dataset->classes[i] = string_of(j, at);
    }
    int repeated = strings && twice(sorted, dataset->class_count);
    free(sorted);
    if (!strings)
        return fail(error, "ManifestSyntax", MANIFEST, -1, "a class is not a string");
    if (check_features(j, value[6], 0, error) || take_splits(dataset, j, value[8], error))
        return -1;
    if (repeated)
        return fail(error, "ManifestValue", MANIFEST, -1, "a class occurs twice");
    return check_features(j, value[6], 1, error) || check_splits(dataset, j, value[8], error) ? -1 : 0;
}

/* --- files --- */

/* Maps a file. (An empty file cannot be mapped.) */
static int map_file(int folder, const char *file, const char *missing, file_map *map, shardtool_error *error)
{
    struct stat status;
    int descriptor = openat(folder, file, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0)
        return fail(error, errno == ENOENT ? missing : "Io", file, -1, "%s", strerror(errno));
    if (fstat(descriptor, &status)) {
        int code = errno;
        close(descriptor);
        return fail(error, "Io", file, -1, "%s", strerror(code));
    }
    map->data = (const uint8_t *)"";
    map->size = (size_t)status.st_size;
    if (map->size) {
        void *data = mmap(NULL, map->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        int code = errno;
        if (data == MAP_FAILED) {
            close(descriptor);
            return fail(error, "Io", file, -1, "%s", strerror(code));
        }
        map->data = data;
    }
    close(descriptor);
    map->open = 1;
    return 0;
}

static void unmap(file_map *map)
{
    if (map->open && map->size)
        munmap((void *)(uintptr_t)map->data, map->size);
    memset(map, 0, sizeof *map);
}

static void close_shard(shard *h)
{
    free(h->index.columns);
    unmap(&h->index.map);
    unmap(&h->data);
    memset(&h->index, 0, sizeof h->index);
}

int shardtool_open(const char *folder, shardtool_dataset **out, shardtool_error *error)
{
    file_map map = {NULL, 0, 0};
    json j;
    int good = 0;
    memset(&j, 0, sizeof j);
    *out = NULL;
    shardtool_dataset *dataset = calloc(1, sizeof *dataset);
    if (!dataset)
        return out_of_memory(error);
    fill_crc_table(dataset->crc_table);
    dataset->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dataset->folder < 0)
        fail(error, "Io", MANIFEST, -1, "%s", strerror(errno));
    else if (map_file(dataset->folder, MANIFEST, "Io", &map, error) == 0 &&
             check_end(dataset, map.data, map.size, error) == 0) {
        j.text = j.at = (const char *)map.data;
        j.end = j.text + map.size;
        j.strings = dataset->strings = malloc(map.size);
        if (!j.strings) {
            out_of_memory(error);
        } else {
            int parsed = is_utf8(map.data, map.size);
            skip_space(&j);
            parsed = parsed && take_value(&j, 0);
            skip_space(&j);
            if (j.out_of_memory)
                out_of_memory(error);
            else if (!parsed || j.at != j.end)
                fail(error, "ManifestSyntax", MANIFEST, -1, "not JSON at offset %zu", (size_t)(j.at - j.text));
            else
                good = take_manifest(dataset, &j, error) == 0;
        }
    }
    free(j.nodes);
    unmap(&map);
    if (!good) {
        shardtool_close(dataset);
        return -1;
    }
    *out = dataset;
    return 0;
}

void shardtool_close(shardtool_dataset *dataset)
{
    if (!dataset)
        return;
    for (size_t i = 0; i < dataset->split_count; i++) {
        for (size_t k = 0; k < dataset->splits[i].count; k++) {
            close_shard(&dataset->splits[i].shards[k]);
            free(dataset->splits[i].shards[k].index_file);
        }
        free(dataset->splits[i].shards);
    }
    free(dataset->splits);
    free(dataset->classes);
    free(dataset->strings);
    if (dataset->folder >= 0)
        close(dataset->folder);
    free(dataset);
}

size_t shardtool_split_count(const shardtool_dataset *dataset) { return dataset->split_count; }

int64_t shardtool_find_split(const shardtool_dataset *dataset, const char *name)
{
    for (size_t i = 0; i < dataset->split_count; i++)
        if (strcmp(dataset->splits[i].name, name) == 0)
            return (int64_t)i;
    return -1;
}

const char *shardtool_split_name(const shardtool_dataset *dataset, size_t i) { return dataset->splits[i].name; }

uint64_t shardtool_split_records(const shardtool_dataset *dataset, size_t i) { return dataset->splits[i].records; }

static void put(uint8_t *p, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        p[i] = (uint8_t)(value >> 8 * i);
}

uint32_t shardtool_fingerprint(const shardtool_dataset *dataset, size_t i)
{
    uint32_t crc = 0;
    for (size_t k = 0; k < dataset->splits[i].count; k++) {
        const shard *h = &dataset->splits[i].shards[k];
        uint8_t row[20];
        put(row, h->records, 8);
        put(row + 8, h->bytes, 8);
        put(row + 16, h->crc, 4);
        crc = crc32c(dataset, crc, row, sizeof row);
    }
    return crc;
}

size_t shardtool_class_count(const shardtool_dataset *dataset) { return dataset->class_count; }

shardtool_bytes shardtool_class_name(const shardtool_dataset *dataset, size_t i) { return dataset->classes[i]; }

/* --- shards --- */

/* If `check` is 0, the data's CRC is not checked. `after` is the offset of the frame's end. */
static int read_frame(const shardtool_dataset *dataset, const shard *h, uint64_t size, uint64_t offset, uint64_t row,
                      int check, shardtool_bytes *data, uint64_t *after, shardtool_error *error)
{
    const uint8_t *p = h->data.data + offset;
    uint64_t left = size - offset;
    int64_t record = (int64_t)row;
    if (left < 12)
        return fail(error, "TruncatedFrame", h->file, record, "at offset %llu: expected 12 bytes, %llu are left",
                    (unsigned long long)offset, (unsigned long long)left);
    uint32_t found = masked(crc32c(dataset, 0, p, 8));
    if (found != u32(p + 8)) {
        if (offset == 0 && ((p[0] == 0x1f && p[1] == 0x8b) || (p[0] == 0x78 && (p[1] == 0x01 || p[1] == 0x5e ||
                                                                                 p[1] == 0x9c || p[1] == 0xda))))
            return fail(error, "CompressedRecords", h->file, -1, "a gzip or zlib file: decompress it");
        return fail(error, "LengthCrc", h->file, record, "at offset %llu: expected %08x, found %08x",
                    (unsigned long long)offset, u32(p + 8), found);
    }
    uint64_t length = u64(p);
    if (left < 16 || length > left - 16)
        return fail(error, "TruncatedFrame", h->file, record, "at offset %llu: %llu bytes of data, %llu bytes are left",
                    (unsigned long long)offset, (unsigned long long)length, (unsigned long long)left);
    if (check) {
        uint32_t expected = u32(p + 12 + length);
        found = masked(crc32c(dataset, 0, p + 12, length));
        if (found != expected)
            return fail(error, "DataCrc", h->file, record, "at offset %llu: expected %08x, found %08x",
                        (unsigned long long)offset, expected, found);
    }
    data->data = p + 12;
    data->size = (size_t)length;
    *after = offset + length + 16;
    return 0;
}

/* --- records: the wire format --- */

typedef struct {
    const uint8_t *at, *end;
} wire;

static int take_varint(wire *w, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
        if (w->at == w->end)
            return 0;
        uint64_t byte = *w->at++;
        if (shift == 63 && byte > 1)
            return 0;
        *value |= (byte & 127) << shift;
        if (byte < 128)
            return 1;
    }
    return 0;
}

/* Returns 1 for a field, 0 at the end, -1 if malformed. `value` is set for varints, `body` for other types. */
static int take_field(wire *w, uint64_t *number, int *type, uint64_t *value, wire *body)
{
    uint64_t tag, size;
    if (w->at == w->end)
        return 0;
    if (!take_varint(w, &tag))
        return -1;
    *number = tag >> 3;
    *type = (int)(tag & 7);
    if (*number < 1 || *number > 536870911)
        return -1;
    if (*type == 0)
        return take_varint(w, value) ? 1 : -1;
    if (*type == 2) {
        if (!take_varint(w, &size))
            return -1;
    } else if (*type == 1 || *type == 5) {
        size = *type == 1 ? 8 : 4;
    } else {
        return -1;
    }
    if (size > (uint64_t)(w->end - w->at))
        return -1;
    body->at = w->at;
    body->end = w->at += size;
    return 1;
}

/* Finds the next message in field `wanted`. Returns 1, 0, -1 as above. */
static int take_message(wire *w, uint64_t wanted, wire *body)
{
    uint64_t number, value;
    int type, got;
    while ((got = take_field(w, &number, &type, &value, body)) == 1)
        if (number == wanted && type == 2)
            return 1;
    return got;
}

static void add_integer(shardtool_feature_list *f, uint64_t word, void *out)
{
    if (out)
        ((int64_t *)out)[f->count] = as_i64(word);
    f->count++;
}

static int take_list(wire list, shardtool_feature_list *f, void *out)
{
    uint64_t number, value;
    wire body;
    int type, got;
    while ((got = take_field(&list, &number, &type, &value, &body)) == 1) {
        if (number != 1)
            continue;
        if (f->kind == SHARDTOOL_BYTES && type == 2) {
            if (out) {
                shardtool_bytes bytes = {body.at, (size_t)(body.end - body.at)};
                ((shardtool_bytes *)out)[f->count] = bytes;
            }
            f->count++;
        } else if (f->kind == SHARDTOOL_INT64 && type == 0) {
            add_integer(f, value, out);
        } else if (f->kind == SHARDTOOL_INT64 && type == 2) {
            for (; body.at < body.end; add_integer(f, value, out))
                if (!take_varint(&body, &value))
                    return -1;
        } else if (f->kind == SHARDTOOL_FLOAT && (type == 5 || (type == 2 && (body.end - body.at) % 4 == 0))) {
            for (; body.at < body.end; body.at += 4, f->count++)
                if (out)
                    ((float *)out)[f->count] = as_f32(u32(body.at));
        } else {
            return -1;
        }
    }
    return got;
}

/* Name and list of an Entry. A list of another kind begins a new run; values of run `wanted` go to `out`. */
static int take_entry(wire entry, shardtool_bytes *name, shardtool_feature_list *f, uint64_t wanted, void *out)
{
    uint64_t number, value;
    wire body, list, names = entry, values = entry;
    int type, got;
    memset(f, 0, sizeof *f);
    f->entry.data = entry.at;
    f->entry.size = (size_t)(entry.end - entry.at);
    *name = text("");
    while ((got = take_message(&names, 1, &body)) == 1) {
        name->data = body.at;
        name->size = (size_t)(body.end - body.at);
        if (!is_utf8(name->data, name->size))
            return -1;
    }
    while (got == 0 && (got = take_message(&values, 2, &body)) == 1) {
        f->kind = SHARDTOOL_MISSING; /* the last value is used */
        f->count = 0;
        while ((got = take_field(&body, &number, &type, &value, &list)) == 1) {
            if (type != 2 || number > 3)
                return -1;
            if (f->kind != (int)number) {
                f->kind = (int)number;
                f->count = 0;
                f->run++;
            }
            if (take_list(list, f, out && f->run == wanted ? out : NULL))
                return -1;
        }
    }
    return got;
}

/* Parses the whole Example and keeps one feature. Returns 1, 0 without it, -1 if malformed. */
static int find_feature(shardtool_bytes data, shardtool_bytes name, shardtool_feature_list *feature)
{
    wire example = {data.data, data.data + data.size}, features, entry;
    int got, inner;
    feature->kind = SHARDTOOL_MISSING;
    while ((got = take_message(&example, 1, &features)) == 1) {
        while ((inner = take_message(&features, 1, &entry)) == 1) {
            shardtool_feature_list found;
            shardtool_bytes found_name;
            if (take_entry(entry, &found_name, &found, 0, NULL))
                return -1;
            if (equal(found_name, name))
                *feature = found;
        }
        if (inner)
            return -1;
    }
    return got ? -1 : feature->kind != SHARDTOOL_MISSING;
}

void shardtool_values(const shardtool_feature_list *feature, void *values)
{
    wire entry = {feature->entry.data, feature->entry.data + feature->entry.size};
    shardtool_feature_list again;
    shardtool_bytes name;
    take_entry(entry, &name, &again, feature->run, values);
}

/* Gets the value of a feature that has exactly one, of this kind. Returns 1, otherwise 0, -1 if malformed. */
static int one(shardtool_bytes data, shardtool_bytes name, int kind, void *value)
{
    shardtool_feature_list feature;
    int got = find_feature(data, name, &feature);
    if (got != 1)
        return got;
    if (feature.kind != kind || feature.count != 1)
        return 0;
    shardtool_values(&feature, value);
    return 1;
}

/* Gets a record's image from the feature that the manifest names. Returns as `one`. */
static int find_image(const shardtool_record *record, shardtool_bytes *image)
{
    if (!record->dataset->image.data || record->dataset->opaque)
        return 0;
    return one(record->data, record->dataset->image, SHARDTOOL_BYTES, image);
}

static int malformed(const shardtool_record *record, shardtool_error *error)
{
    return fail(error, "MalformedExample", record->shard->file, (int64_t)record->row, "the data is not an Example");
}

int shardtool_feature(const shardtool_record *record, const char *name, shardtool_feature_list *feature,
                      shardtool_error *error)
{
    feature->kind = SHARDTOOL_MISSING;
    if (record->dataset->opaque)
        return 0;
    int got = find_feature(record->data, text(name), feature);
    return got < 0 ? malformed(record, error) : got;
}

int shardtool_class_id(const shardtool_record *record, int64_t *class_id, shardtool_error *error)
{
    const shardtool_dataset *dataset = record->dataset;
    int64_t label, offset = dataset->label_offset;
    if (dataset->opaque || !dataset->label.data)
        return 0;
    int got = one(record->data, dataset->label, SHARDTOOL_INT64, &label);
    if (got != 1)
        return got < 0 ? malformed(record, error) : 0;
    if (offset < 0 ? label > INT64_MAX + offset : label < INT64_MIN + offset)
        return 0;
    *class_id = label - offset;
    return 1;
}

int shardtool_pixels(const shardtool_record *record, shardtool_raw_pixels *pixels, shardtool_error *error)
{
    static const char *const known[] = {"jpeg", "png", "webp", "gif", "bmp", "tiff", "avif", "jxl", "jp2", "heif", "raw-zstd"};
    const char *file = record->shard->file;
    int64_t row = (int64_t)record->row, height = 0, width = 0;
    shardtool_bytes format = {NULL, 0}, image;
    int got = find_image(record, &image);
    if (got != 1)
        return got < 0 ? malformed(record, error) : 0;
    if (one(record->data, text("image/format"), SHARDTOOL_BYTES, &format) != 1)
        return fail(error, "NotDecoded", file, row, "the record does not name the image's format");
    for (size_t i = 0; i < LENGTH(known); i++)
        if (equal(format, text(known[i])))
            return fail(error, "NotDecoded", file, row, "this reader does not decode %s", known[i]);
    if (!equal(format, text("raw")))
        return fail(error, "ImageDecode", file, row, "image/format \"%.*s\" is not known",
                    (int)(format.size < 40 ? format.size : 40), (const char *)format.data);
    int sized = one(record->data, text("image/height"), SHARDTOOL_INT64, &height) == 1 &&
                one(record->data, text("image/width"), SHARDTOOL_INT64, &width) == 1;
    pixels->height = (uint64_t)height;
    pixels->width = (uint64_t)width;
    pixels->rgb = image;
    if (sized && height >= 0 && width >= 0 && image.size % 3 == 0) {
        uint64_t count = image.size / 3;
        if (height == 0 || width == 0 ? count == 0
                                      : count % pixels->width == 0 && count / pixels->width == pixels->height)
            return 1;
    }
    return fail(error, "PixelsLength", file, row, "%zu bytes, height %lld, width %lld", image.size, (long long)height,
                (long long)width);
}

/* --- index --- */

static uint64_t element_width(int element) { return element == 2 || element == 3 ? 8 : 4; }

static uint64_t aligned(uint64_t offset) { return (offset + 63) / 64 * 64; }

static int all_zero(const uint8_t *data, uint64_t from, uint64_t to)
{
    for (; from < to; from++)
        if (data[from])
            return 0;
    return 1;
}

static int layout(shardtool_error *error, const char *file, const char *what)
{
    return fail(error, "IndexLayout", file, -1, "%s", what);
}

/* `end` is the directory's end. Offsets stay below 2⁶³, like the file's size. */
static int read_directory(shard_index *index, const char *file, uint32_t count, uint64_t end, shardtool_error *error)
{
    const uint8_t *data = index->map.data;
    uint64_t size = index->map.size, at = 64 + 48 * (uint64_t)count, free_from = end;
    if (at > end)
        return layout(error, file, "entries run past the directory");
    index->columns = calloc((size_t)count + 1, sizeof *index->columns);
    shardtool_bytes *names = calloc((size_t)count + 1, sizeof *names);
    int good = index->columns && names;
    if (!good)
        out_of_memory(error);
    for (uint32_t i = 0; good && i < count; i++) {
        const uint8_t *p = data + 64 + 48 * (uint64_t)i;
        column *c = &index->columns[i];
        uint64_t name_size = u16(p + 2);
        c->kind = p[0];
        c->element = p[1];
        c->part[0].offset = u64(p + 8);
        c->part[0].length = u64(p + 16);
        c->part[1].offset = u64(p + 24);
        c->part[1].length = u64(p + 32);
        c->part[0].crc = u32(p + 40);
        c->part[1].crc = u32(p + 44);
        c->name.data = data + at;
        c->name.size = (size_t)name_size;
        names[i] = c->name;
        good = 0;
        uint64_t width = c->kind ? 8 : element_width(c->element);
        if (name_size > end - at || !is_utf8(c->name.data, c->name.size))
            layout(error, file, "a name runs past the directory, or is not UTF-8");
        else if (c->kind == 0 ? c->element < 1 || c->element > 4 : c->kind != 1 || c->element != 0)
            layout(error, file, "a column of an invalid kind or element");
        else if (u32(p + 4))
            layout(error, file, "a reserved field is not 0");
        else if (c->part[0].length / width != index->records || c->part[0].length % width)
            layout(error, file, "the first part's length is not records × width");
        else if (c->kind == 0 && (c->part[1].offset || c->part[1].length || c->part[1].crc))
            layout(error, file, "a second part in a fixed-width column");
        else
            good = 1;
        at += name_size;
        for (int k = 0; good && k <= c->kind; k++) {
            good = c->part[k].offset == aligned(free_from) && c->part[k].offset <= size &&
                   c->part[k].length <= size - c->part[k].offset;
            if (!good)
                layout(error, file, "a part has the wrong offset");
            else
                free_from = c->part[k].offset + c->part[k].length;
        }
        index->count = i + 1;
    }
    if (good && (at != end || aligned(free_from) != size || twice(names, count))) {
        layout(error, file, "bytes are left over, or two columns have the same name");
        good = 0;
    }
    free(names);
    return good ? 0 : -1;
}

static int check_columns(shard_index *index, const char *file, shardtool_error *error)
{
    const struct {
        const char *name;
        int kind, element;
        column **slot;
    } known[] = {{"record_offset", 0, 2, &index->record_offset},
                 {"image_offset", 0, 1, &index->image_offset},
                 {"image_length", 0, 1, &index->image_length},
                 {"key", 1, 0, &index->key},
                 {"jpeg_entries", 1, 0, NULL}};
    for (size_t i = 0; i < index->count; i++) {
        column *c = &index->columns[i];
        for (size_t k = 0; k < LENGTH(known); k++) {
            if (!equal(c->name, text(known[k].name)))
                continue;
            if (c->kind != known[k].kind || c->element != known[k].element)
                return fail(error, "IndexColumn", file, -1, "column %s is of another kind", known[k].name);
            if (known[k].slot)
                *known[k].slot = c;
        }
        if (c->name.size >= 8 && memcmp(c->name.data, "feature:", 8) == 0 && (c->kind != 0 || c->element < 3))
            return fail(error, "IndexColumn", file, -1, "a column of a feature is of another kind");
    }
    for (size_t k = 0; k < LENGTH(known); k++)
        if (known[k].slot && !*known[k].slot)
            return fail(error, "IndexColumn", file, -1, "column %s is absent", known[k].name);
    return 0;
}

static int read_index(shardtool_dataset *dataset, const shard *h, shard_index *index, shardtool_error *error)
{
    const char *file = h->index_file;
    const uint8_t *p = index->map.data;
    uint64_t size = index->map.size;
    if (size < 64)
        return fail(error, "IndexTruncated", file, -1, "expected a header of 64 bytes, found %llu",
                    (unsigned long long)size);
    if (memcmp(p, "\x89STX\r\n\x1a\n", 8) != 0)
        return fail(error, "IndexMagic", file, -1, "the magic bytes do not match");
    if (crc32c(dataset, 0, p, 60) != u32(p + 60))
        return fail(error, "IndexHeaderCrc", file, -1, "expected %08x, found %08x", u32(p + 60),
                    crc32c(dataset, 0, p, 60));
    if (u16(p + 8) != 1)
        return fail(error, "IndexVersion", file, -1, "expected major version 1, found %d", u16(p + 8));
    if (u32(p + 12))
        return fail(error, "IndexFlags", file, -1, "required flags %08x", u32(p + 12));
    if (size != u64(p + 48))
        return fail(error, size < u64(p + 48) ? "IndexTruncated" : "IndexLayout", file, -1,
                    "expected %llu bytes, found %llu", (unsigned long long)u64(p + 48), (unsigned long long)size);
    uint64_t directory = u32(p + 44), end = 64 + directory;
    if (end > size)
        return layout(error, file, "the directory runs past the index");
    if (crc32c(dataset, 0, p + 64, directory) != u32(p + 56))
        return fail(error, "IndexDirectoryCrc", file, -1, "expected %08x, found %08x", u32(p + 56),
                    crc32c(dataset, 0, p + 64, directory));
    index->records = u64(p + 24);
    if (read_directory(index, file, u32(p + 20), end, error))
        return -1;
    if (!all_zero(p, end, aligned(end)))
        return fail(error, "IndexPadding", file, -1, "bytes after the directory are not zero");
    if (index->records != h->records)
        return fail(error, "RecordCount", file, -1, "expected %llu records, found %llu",
                    (unsigned long long)h->records, (unsigned long long)index->records);
    if (u64(p + 32) != h->bytes || u32(p + 40) != h->crc)
        return fail(error, "IndexMismatch", file, -1, "length or CRC of the shard is not the manifest's");
    return check_columns(index, file, error);
}

static int open_index(shardtool_dataset *dataset, shard *h, shardtool_error *error)
{
    if (h->index.open)
        return 0;
    if (map_file(dataset->folder, h->index_file, "MissingIndex", &h->index.map, error) ||
        read_index(dataset, h, &h->index, error)) {
        free(h->index.columns);
        unmap(&h->index.map);
        memset(&h->index, 0, sizeof h->index);
        return -1;
    }
    h->index.open = 1;
    return 0;
}

/* Checks CRCs, padding and ends of a column. */
static int check_column(const shardtool_dataset *dataset, shard *h, column *c, shardtool_error *error)
{
    const uint8_t *data = h->index.map.data;
    int name_size = (int)(c->name.size < 60 ? c->name.size : 60);
    if (c->checked)
        return 0;
    for (int k = 0; k <= c->kind; k++) {
        uint32_t found = crc32c(dataset, 0, data + c->part[k].offset, c->part[k].length);
        if (found != c->part[k].crc)
            return fail(error, "ColumnCrc", h->index_file, -1, "%.*s: expected %08x, found %08x", name_size,
                        (const char *)c->name.data, c->part[k].crc, found);
    }
    for (int k = 0; k <= c->kind; k++) {
        uint64_t end = c->part[k].offset + c->part[k].length;
        if (!all_zero(data, end, aligned(end)))
            return fail(error, "IndexPadding", h->index_file, -1, "bytes after %.*s are not zero", name_size,
                        (const char *)c->name.data);
    }
    if (c->kind == 1) {
        uint64_t before = 0;
        for (uint64_t i = 0; i < h->index.records; i++) {
            uint64_t end = u64(data + c->part[0].offset + 8 * i);
            if (end < before)
                return fail(error, "ColumnValue", h->index_file, -1, "%.*s: ends decrease at row %llu", name_size,
                            (const char *)c->name.data, (unsigned long long)i);
            before = end;
        }
        if (before != c->part[1].length)
            return fail(error, "ColumnValue", h->index_file, -1, "%.*s: the last end is not the length of the bytes",
                        name_size, (const char *)c->name.data);
    }
    c->checked = 1;
    return 0;
}

/* Rows of columns that have been checked. */
static uint64_t number_at(const shard *h, const column *c, uint64_t row)
{
    uint64_t width = element_width(c->element);
    const uint8_t *p = h->index.map.data + c->part[0].offset + width * row;
    return width == 8 ? u64(p) : u32(p);
}

static shardtool_bytes bytes_at(const shard *h, const column *c, uint64_t row)
{
    const uint8_t *ends = h->index.map.data + c->part[0].offset;
    uint64_t from = row ? u64(ends + 8 * (row - 1)) : 0;
    shardtool_bytes bytes = {h->index.map.data + c->part[1].offset + from, (size_t)(u64(ends + 8 * row) - from)};
    return bytes;
}

/* --- record i --- */

static int shard_length(const shard *h, int64_t row, shardtool_error *error)
{
    return fail(error, "ShardLength", h->file, row, "expected %llu bytes, found %llu", (unsigned long long)h->bytes,
                (unsigned long long)h->data.size);
}

int shardtool_read(shardtool_dataset *dataset, size_t number, uint64_t id, int flags, shardtool_record *record,
                   shardtool_error *error)
{
    if (number >= dataset->split_count || id >= dataset->splits[number].records)
        return fail(error, "Argument", "", -1, "no such split or record");
    split *s = &dataset->splits[number];
    size_t low = 0, high = s->count; /* the last shard that begins at or before id, which is not empty */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (s->shards[middle].first <= id)
            low = middle;
        else
            high = middle;
    }
    shard *h = &s->shards[low];
    if (!h->data.open && map_file(dataset->folder, h->file, "MissingShard", &h->data, error))
        return -1;
    if (open_index(dataset, h, error) || check_column(dataset, h, h->index.record_offset, error))
        return -1;
    record->dataset = dataset;
    record->shard = h;
    record->id = id;
    record->row = id - h->first;
    uint64_t offset = number_at(h, h->index.record_offset, record->row), after;
    int64_t row = (int64_t)record->row;
    int shorter = h->data.size < h->bytes;
    if (offset >= h->data.size)
        return shorter ? shard_length(h, row, error)
                       : fail(error, "IndexMismatch", h->index_file, row, "frame offset past the shard's end");
    if (read_frame(dataset, h, h->data.size, offset, record->row, !(flags & SHARDTOOL_TRUST_DATA), &record->data,
                   &after, error))
        return shorter && strcmp(error->name, "TruncatedFrame") == 0 ? shard_length(h, row, error) : -1;
    return 0;
}

int shardtool_key(const shardtool_record *record, shardtool_bytes *key, shardtool_error *error)
{
    shard *h = record->shard;
    if (check_column(record->dataset, h, h->index.key, error))
        return -1;
    *key = bytes_at(h, h->index.key, record->row);
    return 0;
}

int shardtool_image(const shardtool_record *record, shardtool_bytes *image, shardtool_error *error)
{
    shard *h = record->shard;
    if (check_column(record->dataset, h, h->index.image_offset, error) ||
        check_column(record->dataset, h, h->index.image_length, error))
        return -1;
    uint64_t offset = number_at(h, h->index.image_offset, record->row);
    uint64_t length = number_at(h, h->index.image_length, record->row);
    if (offset + length > record->data.size)
        return fail(error, "IndexMismatch", h->index_file, (int64_t)record->row, "image range past the record's end");
    image->data = record->data.data + offset;
    image->size = (size_t)length;
    return offset != 0;
}

static int feature_column(const column *c, shardtool_bytes *name)
{
    if (c->name.size < 8 || memcmp(c->name.data, "feature:", 8) != 0)
        return 0;
    name->data = c->name.data + 8;
    name->size = c->name.size - 8;
    return 1;
}

int shardtool_column(const shardtool_record *record, size_t i, shardtool_bytes *name, shardtool_number *number,
                     shardtool_error *error)
{
    shard *h = record->shard;
    for (size_t k = 0; k < h->index.count; k++) {
        column *c = &h->index.columns[k];
        if (!feature_column(c, name) || i-- > 0)
            continue;
        if (check_column(record->dataset, h, c, error))
            return -1;
        uint64_t word = number_at(h, c, record->row);
        memset(number, 0, sizeof *number);
        number->is_float = c->element == 4;
        if (number->is_float)
            number->real = as_f32((uint32_t)word);
        else
            number->integer = as_i64(word);
        return 1;
    }
    return 0;
}

/* --- verification --- */

typedef struct {
    shardtool_dataset *dataset;
    shard *shard;
    uint64_t findings;
    int in_shard, in_index, counts; /* findings in the file, or about record counts */
    void (*report)(void *user, const shardtool_error *finding);
    void *user;
} verification;

static void found(verification *v, const shardtool_error *error)
{
    v->findings++;
    if (strncmp(error->file, "_index/", 7) == 0)
        v->in_index = 1;
    else
        v->in_shard = 1;
    if (strcmp(error->name, "RecordCount") == 0)
        v->counts = 1;
    v->report(v->user, error);
}

static int mismatch(const shardtool_record *record, const char *what, shardtool_error *error)
{
    return fail(error, "IndexMismatch", record->shard->index_file, (int64_t)record->row, "%s is not the record's",
                what);
}

/* Gets the key from the record's features. If it is FILE#N, `number` holds it. */
static int own_key(const shardtool_record *record, char **number, shardtool_bytes *key)
{
    static const char *const names[] = {"image/key", "image/filename"};
    *number = NULL;
    for (size_t i = 0; i < LENGTH(names) && !record->dataset->opaque; i++) {
        int got = one(record->data, text(names[i]), SHARDTOOL_BYTES, key);
        if (got)
            return got;
    }
    *number = malloc(strlen(record->shard->file) + 24);
    if (!*number)
        return 0;
    sprintf(*number, "%s#%llu", record->shard->file, (unsigned long long)record->row);
    *key = text(*number);
    return 1;
}

static int compare_numbers(const shardtool_record *record, shardtool_error *error)
{
    shard *h = record->shard;
    for (size_t k = 0; k < h->index.count; k++) {
        column *c = &h->index.columns[k];
        shardtool_bytes name;
        if (!c->checked || !feature_column(c, &name))
            continue;
        uint64_t word = number_at(h, c, record->row);
        int64_t integer = 0;
        uint32_t real = 0; /* floats are compared bitwise: NaN equals itself, and 0 differs from -0 */
        float value = 0;
        int got = record->dataset->opaque ? 0
                  : c->element == 3       ? one(record->data, name, SHARDTOOL_INT64, &integer)
                                          : one(record->data, name, SHARDTOOL_FLOAT, &value);
        memcpy(&real, &value, 4);
        if (got != 1 || word != (c->element == 3 ? (uint64_t)integer : real))
            return mismatch(record, "a number", error);
    }
    return 0;
}

static int verify_record(const shardtool_record *record, uint64_t at, shardtool_error *error)
{
    shard *h = record->shard;
    const shard_index *index = &h->index;
    uint64_t after;
    shardtool_bytes data;
    int known = index->open && record->row < index->records;
    if (known && index->record_offset->checked && number_at(h, index->record_offset, record->row) != at)
        return mismatch(record, "frame offset", error);
    if (read_frame(record->dataset, h, h->data.size, at, record->row, 1, &data, &after, error))
        return -1;
    shardtool_feature_list any;
    if (!record->dataset->opaque && find_feature(record->data, text(""), &any) < 0)
        return malformed(record, error);
    if (known) {
        shardtool_bytes image = {NULL, 0}, key;
        int got = find_image(record, &image);
        uint64_t offset = got == 1 ? (uint64_t)(image.data - record->data.data) : 0;
        if (index->image_offset->checked && number_at(h, index->image_offset, record->row) != offset)
            return mismatch(record, "image offset", error);
        if (index->image_length->checked && number_at(h, index->image_length, record->row) != image.size)
            return mismatch(record, "image length", error);
        char *number;
        if (!own_key(record, &number, &key))
            return out_of_memory(error);
        int same = !index->key->checked || equal(key, bytes_at(h, index->key, record->row));
        free(number);
        if (!same)
            return mismatch(record, "key", error);
        if (compare_numbers(record, error))
            return -1;
    }
    shardtool_raw_pixels pixels;
    return shardtool_pixels(record, &pixels, error) < 0 && strcmp(error->name, "NotDecoded") != 0 ? -1 : 0;
}

/* Reads the shard from its first frame to its last and compares each with its row of the index. */
static void walk(verification *v)
{
    shard *h = v->shard;
    shardtool_error error;
    const column *offsets = h->index.open && h->index.record_offset->checked ? h->index.record_offset : NULL;
    /* A wrong length is reported once, without its consequences. */
    int sound_length = h->data.size == h->bytes, complete = sound_length;
    uint64_t at = 0, row = 0, size = h->data.size < h->bytes ? h->data.size : h->bytes;
    while (at < size) {
        shardtool_record record = {v->dataset, h, h->first + row, row, {NULL, 0}};
        uint64_t after;
        if (read_frame(v->dataset, h, size, at, row, 0, &record.data, &after, &error)) {
            if (sound_length || strcmp(error.name, "TruncatedFrame") != 0)
                found(v, &error);
            complete = 0;
            after = offsets && row + 1 < h->records ? number_at(h, offsets, row + 1) : 0;
            if (strcmp(error.name, "CompressedRecords") == 0 || after <= at || after >= size)
                break;
        } else if (row < h->records && verify_record(&record, at, &error)) {
            found(v, &error);
        }
        at = after;
        row++;
    }
    if (complete && row != h->records && !v->counts) {
        fail(&error, "RecordCount", h->file, -1, "expected %llu records, found %llu", (unsigned long long)h->records,
             (unsigned long long)row);
        found(v, &error);
    }
}

static void verify_shard(verification *v)
{
    shard *h = v->shard;
    shardtool_error error;
    v->in_shard = v->in_index = v->counts = 0;
    if (map_file(v->dataset->folder, h->file, "MissingShard", &h->data, &error))
        found(v, &error);
    else if (h->data.size != h->bytes) {
        shard_length(h, -1, &error);
        found(v, &error);
    }
    if (open_index(v->dataset, h, &error))
        found(v, &error);
    for (size_t k = 0; k < h->index.count; k++)
        if (check_column(v->dataset, h, &h->index.columns[k], &error))
            found(v, &error);
    if (h->data.open) {
        walk(v);
        uint32_t crc = crc32c(v->dataset, 0, h->data.data, h->data.size);
        if (!v->in_shard && crc != h->crc) {
            fail(&error, "ShardCrc", h->file, -1, "expected %08x, found %08x", h->crc, crc);
            found(v, &error);
        }
    }
    const file_map *index = &h->index.map;
    if (!v->in_index &&
        (index->size != h->index_bytes || crc32c(v->dataset, 0, index->data, index->size) != h->index_crc)) {
        fail(&error, "IndexCrc", h->index_file, -1, "length or CRC is not the manifest's");
        found(v, &error);
    }
    close_shard(h);
}

uint64_t shardtool_verify(const char *folder, void (*report)(void *, const shardtool_error *), void *user)
{
    verification v;
    shardtool_error error;
    memset(&v, 0, sizeof v);
    v.report = report;
    v.user = user;
    if (shardtool_open(folder, &v.dataset, &error)) {
        found(&v, &error);
        return v.findings;
    }
    for (size_t i = 0; i < v.dataset->split_count; i++)
        for (size_t k = 0; k < v.dataset->splits[i].count; k++) {
            v.shard = &v.dataset->splits[i].shards[k];
            verify_shard(&v);
        }
    shardtool_close(v.dataset);
    return v.findings;
}

/* --- order --- */

#define G 0x9e3779b97f4a7c15u

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint64_t shardtool_derive_key(const char *domain, uint64_t seed, uint64_t epoch, uint64_t tweak)
{
    uint64_t words[] = {seed, epoch, tweak}, h = 0;
    for (int i = 0; i < 8; i++)
        h = h << 8 | (unsigned char)(*domain ? *domain++ : ' ');
    for (size_t i = 0; i < LENGTH(words); i++)
        h = mix((h ^ words[i]) + G);
    return h;
}

uint64_t shardtool_draw(uint64_t key, uint64_t i) { return mix(key + (i + 1) * G); }

uint64_t shardtool_scale(uint64_t word, uint64_t n) { return (word >> 32) * n >> 32; }

int shardtool_permutation_init(shardtool_permutation *p, uint64_t n, uint64_t key)
{
    if (n > (uint64_t)1 << 63)
        return -1;
    p->n = n;
    p->a = p->b = 0;
    if (n <= LENGTH(p->table)) {
        for (uint64_t i = 0; i < n; i++)
            p->table[i] = (uint16_t)i;
        for (uint64_t i = n; i-- > 1;) {
            uint64_t j = shardtool_scale(shardtool_draw(key, n - 1 - i), i + 1);
            uint16_t t = p->table[i];
            p->table[i] = p->table[j];
            p->table[j] = t;
        }
        return 0;
    }
    uint64_t low = 0, high = (uint64_t)1 << 32; /* to the smallest a with a² ≥ n */
    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;
        if (middle * middle >= n)
            high = middle;
        else
            low = middle;
    }
    p->a = high;
    p->b = (n + high - 1) / high;
    for (uint64_t i = 0; i < 6; i++)
        p->keys[i] = shardtool_draw(key, i);
    return 0;
}

uint64_t shardtool_permute(const shardtool_permutation *p, uint64_t x)
{
    if (p->n <= LENGTH(p->table))
        return p->table[x];
    do {
        uint64_t left = x / p->b, right = x % p->b;
        for (int i = 0; i < 6; i += 2) {
            left = (left + shardtool_scale(mix(right ^ p->keys[i]), p->a)) % p->a;
            right = (right + shardtool_scale(mix(left ^ p->keys[i + 1]), p->b)) % p->b;
        }
        x = left * p->b + right;
    } while (x >= p->n);
    return x;
}

int shardtool_order_init(shardtool_order *o, int kind, uint64_t n, uint64_t seed, uint64_t epoch, uint64_t run,
                         uint64_t window)
{
    memset(o, 0, sizeof *o);
    if (n > (uint64_t)1 << 63 || kind < SHARDTOOL_SEQUENTIAL || kind > SHARDTOOL_INTERLEAVED)
        return -1;
    o->kind = kind;
    o->n = n;
    o->seed = seed;
    o->epoch = epoch;
    o->run = run;
    o->window = window;
    o->inside_number = UINT64_MAX;
    if (kind == SHARDTOOL_SHUFFLED)
        return shardtool_permutation_init(&o->all, n, shardtool_derive_key("shuffled", seed, epoch, 0));
    if (kind == SHARDTOOL_SEQUENTIAL)
        return 0;
    if (run < 1 || run > UINT32_MAX || window < 1 || window > UINT32_MAX)
        return -1;
    return n < run ? 0 : shardtool_permutation_init(&o->all, n / run, shardtool_derive_key("blocks", seed, epoch, 0));
}

uint64_t shardtool_order_place(shardtool_order *o, uint64_t q)
{
    if (o->kind == SHARDTOOL_SEQUENTIAL)
        return q;
    if (o->kind == SHARDTOOL_SHUFFLED)
        return shardtool_permute(&o->all, q);
    uint64_t blocks = o->n / o->run, last = blocks ? (blocks - 1) / o->window : 0;
    uint64_t w = q / (o->window * o->run);
    w = w < last ? w : last;
    uint64_t first = w * o->window, m = blocks - first < o->window ? blocks - first : o->window;
    if (o->inside_number != w) {
        uint64_t size = m * o->run + (w == last ? o->n % o->run : 0);
        shardtool_permutation_init(&o->inside, size, shardtool_derive_key("window", o->seed, o->epoch, w));
        o->inside_number = w;
    }
    uint64_t t = shardtool_permute(&o->inside, q - first * o->run);
    if (t >= m * o->run)
        return blocks * o->run + t - m * o->run;
    return shardtool_permute(&o->all, first + t / o->run) * o->run + t % o->run;
}

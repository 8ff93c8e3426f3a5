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
    uint64_t offset, length;
    uint32_t crc;
} part; /* of a column; one that is absent has length 0 */

enum { VALIDITY, OFFSETS, VALUES };
enum { FIXED, VARIABLE };
enum { OF_BYTES, OF_U32, OF_U64, OF_I64, OF_F32 };

typedef struct {
    shardtool_bytes name;
    int kind, element;
    int state; /* 0 not checked, 1 good, -1 damaged */
    shardtool_error damage;
    part parts[3];
} column;

typedef struct {
    file_map map;
    uint64_t records;
    size_t count;
    column *columns, *record_offset, *image_offset, *image_length, *key;
    int state; /* 0 not opened, 1 open, -1 damaged */
    shardtool_error damage;
} shard_index;

typedef struct shardtool_shard {
    const char *file;
    char *index_file;
    uint64_t records, bytes, index_bytes, first;
    uint32_t crc, index_crc;
    const char *sha256; /* 64 hex digits, or NULL */
    file_map data;
    shard_index index;
} shard;

typedef struct {
    const char *name;
    shard *shards;
    size_t count;
    uint64_t records;
} split;

typedef struct {
    shardtool_bytes name;
    int type;
} logical_type;

struct shardtool_dataset {
    int folder;
    uint32_t crc_table[8][256];
    char *strings; /* those of the manifest, each ending in NUL */
    shardtool_bytes image, label;
    int64_t label_offset;
    int opaque, sequences;
    shardtool_bytes *classes;
    size_t class_count;
    logical_type *logical;
    size_t logical_count;
    split *splits;
    size_t split_count;
};

static int fail_at(shardtool_error *error, const char *name, const char *file, int64_t record, int64_t offset,
                   const char *format, va_list arguments)
{
    error->name = name;
    error->file = file;
    error->record = record;
    error->offset = offset;
    vsnprintf(error->text, sizeof error->text, format, arguments);
    return -1;
}

/* An error of a file. */
static int fail(shardtool_error *error, const char *name, const char *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_at(error, name, file, -1, -1, format, arguments);
    va_end(arguments);
    return -1;
}

/* An error of a record: its row in the shard, and the offset of its frame. */
static int fail_record(shardtool_error *error, const char *name, const char *file, uint64_t row, uint64_t offset,
                       const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fail_at(error, name, file, (int64_t)row, (int64_t)offset, format, arguments);
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

static int starts_with(shardtool_bytes bytes, const char *prefix)
{
    size_t size = strlen(prefix);
    return bytes.size >= size && memcmp(bytes.data, prefix, size) == 0;
}

static int ends_with(shardtool_bytes bytes, const char *suffix)
{
    size_t size = strlen(suffix);
    return bytes.size >= size && memcmp(bytes.data + bytes.size - size, suffix, size) == 0;
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
    char type; /* s string, 0 string or null, a array, l array of strings, i i64, u u64, c CRC, h SHA-256 */
    int optional;
} member;

static const member IDENTITY[] = {{"format", 's', 1}, {"version", 's', 1}, {"requires", 'l', 1}};
static const member MEMBERS[] = {{"format", 's', 0},   {"version", 's', 0}, {"created_by", 's', 1},
                                 {"image", '0', 1},    {"label", '0', 1},   {"label_offset", 'i', 0},
                                 {"features", 'a', 0}, {"classes", 'l', 0}, {"splits", 'a', 0},
                                 {"crc32c", 'c', 0},   {"requires", 'l', 1}};
static const member FEATURE[] = {{"name", 's', 0}, {"type", 's', 0}, {"logical", 's', 1}};
static const member SPLIT[] = {{"name", 's', 0}, {"shards", 'a', 0}};
static const member SHARD[] = {{"file", 's', 0},   {"records", 'u', 0},     {"bytes", 'u', 0},
                               {"crc32c", 'c', 0}, {"index_bytes", 'u', 0}, {"index_crc32c", 'c', 0},
                               {"sha256", 'h', 1}};

/* Returns 1 for lower-case hex digits; `value` holds the last eight. */
static int parse_hex(const uint8_t *p, size_t size, size_t expected, uint32_t *value)
{
    *value = 0;
    for (size_t i = 0; i < size; i++) {
        int digit = p[i] >= '0' && p[i] <= '9' ? p[i] - '0' : p[i] >= 'a' && p[i] <= 'f' ? p[i] - 'a' + 10 : -1;
        if (digit < 0)
            return 0;
        *value = *value << 4 | (uint32_t)digit;
    }
    return size == expected;
}

static int is_strings(const json *j, size_t array)
{
    if (j->nodes[array].type != '[')
        return 0;
    for (size_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next)
        if (j->nodes[at].type != '"')
            return 0;
    return 1;
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
    case 'l':
        return is_strings(j, at);
    case 'i':
        return found == 'i' && magnitude(j, at, &negative, &value) && value <= (uint64_t)INT64_MAX + (negative != 0);
    case 'u':
        return found == 'i' && magnitude(j, at, &negative, &value) && !negative;
    default:
        return found == '"' && parse_hex(string_of(j, at).data, string_of(j, at).size, type == 'c' ? 8 : 64, &crc);
    }
}

/* The values of an object's members; 0 for those that are absent, as no value is node 0. */
static int take_members(const json *j, size_t object, const member *types, size_t count, size_t *values,
                        shardtool_error *error)
{
    memset(values, 0, count * sizeof *values);
    if (j->nodes[object].type != '{')
        return fail(error, "ManifestSyntax", MANIFEST, "expected an object");
    for (size_t at = object + 1; at < j->nodes[object].next; at = j->nodes[at + 1].next)
        for (size_t i = 0; i < count; i++) {
            if (!equal(string_of(j, at), text(types[i].name)))
                continue;
            if (values[i])
                return fail(error, "ManifestSyntax", MANIFEST, "member \"%s\" occurs twice", types[i].name);
            if (!is_type(j, at + 1, types[i].type))
                return fail(error, "ManifestSyntax", MANIFEST, "member \"%s\" is of another type", types[i].name);
            values[i] = at + 1;
        }
    for (size_t i = 0; i < count; i++)
        if (!values[i] && !types[i].optional)
            return fail(error, "ManifestSyntax", MANIFEST, "member \"%s\" is absent", types[i].name);
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
    parse_hex(string_of(j, at).data, string_of(j, at).size, 8, &crc);
    return crc;
}

static const char *chars_of(const json *j, size_t at) { return j->strings + j->nodes[at].start; }

/* `1.` and a number without leading zeros. */
static int is_version_1(shardtool_bytes version)
{
    if (!starts_with(version, "1.") || version.size == 2 || (version.data[2] == '0' && version.size > 3))
        return 0;
    for (size_t i = 2; i < version.size; i++)
        if (version.data[i] < '0' || version.data[i] > '9')
            return 0;
    return 1;
}

static int check_end(shardtool_dataset *dataset, const uint8_t *data, size_t size, shardtool_error *error)
{
    static const char before[] = "\n  \"crc32c\": \"", after[] = "\"\n}\n";
    const size_t head = sizeof before - 1, tail = sizeof after - 1;
    uint32_t expected;
    if (size < head + 8 + tail)
        return fail(error, "ManifestCrc", MANIFEST, "the file does not end in its CRC");
    size_t digits = size - tail - 8;
    if (memcmp(data + digits - head, before, head) != 0 || memcmp(data + size - tail, after, tail) != 0 ||
        !parse_hex(data + digits, 8, 8, &expected))
        return fail(error, "ManifestCrc", MANIFEST, "the file does not end in its CRC");
    uint32_t found = crc32c(dataset, 0, data, digits);
    found = crc32c(dataset, found, (const uint8_t *)"00000000", 8);
    found = crc32c(dataset, found, data + digits + 8, tail);
    if (found != expected)
        return fail(error, "ManifestCrc", MANIFEST,
                    "expected %08x, found %08x: `shardtool repair --reseal` corrects it", expected, found);
    return 0;
}

static int out_of_memory(shardtool_error *error) { return fail(error, "Memory", "", "out of memory"); }

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
            h->sha256 = value[6] ? chars_of(j, value[6]) : NULL;
            /* A NUL inside the name is invalid, like an empty name. */
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
        return fail(error, "ManifestValue", MANIFEST, "%s are not in strictly ascending byte order", what);
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

/* Compares with an ASCII text in lower case; only ASCII letters of `bytes` are folded. */
static int equal_folded(shardtool_bytes bytes, const char *lower)
{
    if (bytes.size != strlen(lower))
        return 0;
    for (size_t i = 0; i < bytes.size; i++) {
        uint8_t c = bytes.data[i];
        if ((c >= 'A' && c <= 'Z' ? c + 32 : c) != (uint8_t)lower[i])
            return 0;
    }
    return 1;
}

/* Returns 1 for a device name of Windows: what precedes the first full stop, without spaces at its end. */
static int is_device(shardtool_bytes name)
{
    static const char *const whole[] = {"con", "prn", "aux", "nul", "conin$", "conout$"};
    static const char *const numbered[] = {"com", "lpt"};
    static const char *const superscripts[] = {"\xc2\xb9", "\xc2\xb2", "\xc2\xb3"};
    const uint8_t *stop = name.size ? memchr(name.data, '.', name.size) : NULL;
    if (stop)
        name.size = (size_t)(stop - name.data);
    while (name.size && name.data[name.size - 1] == ' ')
        name.size--;
    for (size_t i = 0; i < LENGTH(whole); i++)
        if (equal_folded(name, whole[i]))
            return 1;
    for (size_t i = 0; i < LENGTH(numbered); i++) {
        shardtool_bytes stem = {name.data, 3}, number = {name.data + 3, name.size - 3};
        if (name.size <= 3 || !equal_folded(stem, numbered[i]))
            continue;
        if (number.size == 1 && *number.data >= '0' && *number.data <= '9')
            return 1;
        for (size_t k = 0; k < LENGTH(superscripts); k++)
            if (equal(number, text(superscripts[k])))
                return 1;
    }
    return 0;
}

static int is_file_name(const char *file)
{
    shardtool_bytes name = text(file), head, tail;
    if (name.size == 0 || file[0] == '.' || file[name.size - 1] == '.' || file[name.size - 1] == ' ')
        return 0;
    for (const unsigned char *p = (const unsigned char *)file; *p; p++) /* U+0080 to U+009F are c2 80 to c2 9f */
        if (*p < 0x20 || *p == '/' || *p == '\\' || *p == ':' || *p == 0x7f || (*p == 0xc2 && p[1] < 0xa0))
            return 0;
    if (equal_folded(name, "dataset.json") || equal_folded(name, "_index") || is_device(name))
        return 0;
    if (name.size < sizeof "rejected-.jsonl" - 1)
        return 1;
    head.data = name.data;
    head.size = sizeof "rejected-" - 1;
    tail.data = name.data + name.size - (sizeof ".jsonl" - 1);
    tail.size = sizeof ".jsonl" - 1;
    return !equal_folded(head, "rejected-") || !equal_folded(tail, ".jsonl");
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
        if (!is_split_name((const char *)name.data, name.size) || is_device(name))
            return fail(error, "ManifestValue", MANIFEST, "\"%s\" is not a valid split name", s->name);
        if (check_ascending("splits", before, name, error))
            return -1;
        before = name;
        for (size_t k = 0; k < s->count; k++) {
            shard *h = &s->shards[k];
            if (!is_file_name(h->file))
                return fail(error, "ManifestValue", MANIFEST, "\"%s\" is not a valid file name", h->file);
            h->first = s->records;
            if (h->records >= ((uint64_t)1 << 63) - s->records)
                return fail(error, "ManifestValue", MANIFEST, "split \"%s\" has too many records", s->name);
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
        return fail(error, "ManifestValue", MANIFEST, "a shard is listed twice");
    return 0;
}

/* Returns the logical type that a string names; 0 for none, and for those of later versions. */
static int logical_of(const json *j, size_t value)
{
    if (!value)
        return 0;
    shardtool_bytes name = string_of(j, value);
    return equal(name, text("float64")) ? SHARDTOOL_FLOAT64 : equal(name, text("uint64")) ? SHARDTOOL_UINT64 : 0;
}

/* Takes the logical types of features, which have been checked. */
static int take_logical(shardtool_dataset *dataset, const json *j, size_t array, shardtool_error *error)
{
    dataset->logical = calloc(count_items(j, array) + 1, sizeof *dataset->logical);
    if (!dataset->logical)
        return out_of_memory(error);
    for (size_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next) {
        size_t value[LENGTH(FEATURE)];
        if (take_members(j, at, FEATURE, LENGTH(FEATURE), value, error))
            return -1;
        logical_type found = {string_of(j, value[0]), logical_of(j, value[2])};
        if (found.type)
            dataset->logical[dataset->logical_count++] = found;
    }
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
            return fail(error, "ManifestSyntax", MANIFEST, "the type of a feature is not bytes, float or int64");
        if (logical_of(j, value[2]) && !equal(type, text("bytes")))
            return fail(error, "ManifestSyntax", MANIFEST, "a logical type of a feature that is not of type bytes");
        if (values && check_ascending("features", before, name, error))
            return -1;
        before = name;
    }
    return 0;
}

/* Returns 1 if `name`, which may be null, names a feature of this type. */
static int is_feature(const json *j, size_t array, size_t name, const char *type)
{
    if (!name || j->nodes[name].type != '"')
        return 1;
    for (size_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next) {
        size_t value[LENGTH(FEATURE)];
        shardtool_error ignored;
        if (take_members(j, at, FEATURE, LENGTH(FEATURE), value, &ignored))
            return 0;
        if (equal(string_of(j, value[0]), string_of(j, name)))
            return equal(string_of(j, value[1]), text(type));
    }
    return 0;
}

/* Members whose names begin with `x-` are strings, and none occurs twice. */
static int check_private(const json *j, shardtool_error *error)
{
    size_t count = 0;
    shardtool_bytes *names = calloc(j->count + 1, sizeof *names);
    if (!names)
        return out_of_memory(error);
    int strings = 1;
    for (size_t at = 1; at < j->nodes[0].next; at = j->nodes[at + 1].next) {
        if (!starts_with(string_of(j, at), "x-"))
            continue;
        strings = strings && j->nodes[at + 1].type == '"';
        names[count++] = string_of(j, at);
    }
    int repeated = twice(names, count);
    free(names);
    if (!strings || repeated)
        return fail(error, "ManifestSyntax", MANIFEST, "a private member is not a string, or occurs twice");
    return 0;
}

static int take_classes(shardtool_dataset *dataset, const json *j, size_t array, shardtool_error *error)
{
    dataset->class_count = count_items(j, array);
    dataset->classes = calloc(dataset->class_count + 1, sizeof *dataset->classes);
    if (!dataset->classes)
        return out_of_memory(error);
    size_t i = 0;
    for (size_t at = array + 1; at < j->nodes[array].next; at = j->nodes[at].next)
        dataset->classes[i++] = string_of(j, at);
    return 0;
}

static int check_classes(const shardtool_dataset *dataset, shardtool_error *error)
{
    shardtool_bytes *sorted = calloc(dataset->class_count + 1, sizeof *sorted);
    if (!sorted)
        return out_of_memory(error);
    memcpy(sorted, dataset->classes, dataset->class_count * sizeof *sorted);
    int repeated = twice(sorted, dataset->class_count);
    free(sorted);
    return repeated ? fail(error, "ManifestValue", MANIFEST, "a class occurs twice") : 0;
}

/* Format, version and requirements are checked first, then all types, then all values. */
static int take_manifest(shardtool_dataset *dataset, const json *j, shardtool_error *error)
{
    size_t value[LENGTH(MEMBERS)], features, requirements = 0;
    if (take_members(j, 0, IDENTITY, LENGTH(IDENTITY), value, error))
        return -1;
    if (!value[0] || !equal(string_of(j, value[0]), text("shardtool")) || !value[1] ||
        !is_version_1(string_of(j, value[1])))
        return fail(error, "ManifestVersion", MANIFEST, "expected format shardtool and version 1.N");
    if (value[2])
        for (size_t at = value[2] + 1; at < j->nodes[value[2]].next; at = j->nodes[at].next, requirements++) {
            if (!equal(string_of(j, at), text("sequence-example")))
                return fail(error, "ManifestRequires", MANIFEST, "this reader does not know \"%.60s\"",
                            chars_of(j, at));
            dataset->sequences = 1;
        }
    if (take_members(j, 0, MEMBERS, LENGTH(MEMBERS), value, error) || check_private(j, error))
        return -1;
    features = value[6];
    if (value[3] && j->nodes[value[3]].type == '"')
        dataset->image = string_of(j, value[3]);
    if (value[4] && j->nodes[value[4]].type == '"')
        dataset->label = string_of(j, value[4]);
    dataset->label_offset = as_i64(u64_of(j, value[5]));
    dataset->opaque = count_items(j, features) == 0;
    if (take_classes(dataset, j, value[7], error) || check_features(j, features, 0, error) ||
        take_logical(dataset, j, features, error) || take_splits(dataset, j, value[8], error))
        return -1;

    if (requirements > 1)
        return fail(error, "ManifestValue", MANIFEST, "a requirement occurs twice");
    if (!is_feature(j, features, value[3], "bytes"))
        return fail(error, "ManifestValue", MANIFEST, "the image is not a feature of type bytes");
    if (!is_feature(j, features, value[4], "int64"))
        return fail(error, "ManifestValue", MANIFEST, "the label is not a feature of type int64");
    if (check_classes(dataset, error) || check_features(j, features, 1, error))
        return -1;
    return check_splits(dataset, j, value[8], error);
}

/* --- files --- */

/* Maps a file. Anything but a file is missing: opening a pipe would block. (An empty file cannot be mapped.) */
static int map_file(int folder, const char *file, const char *missing, file_map *map, shardtool_error *error)
{
    struct stat status;
    if (fstatat(folder, file, &status, 0) || !S_ISREG(status.st_mode))
        return fail(error, missing, file, "no such file");
    int descriptor = openat(folder, file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return fail(error, "Io", file, "%s", strerror(errno));
    if (fstat(descriptor, &status)) {
        int code = errno;
        close(descriptor);
        return fail(error, "Io", file, "%s", strerror(code));
    }
    map->data = (const uint8_t *)"";
    map->size = (size_t)status.st_size;
    if (map->size) {
        void *data = mmap(NULL, map->size, PROT_READ, MAP_PRIVATE, descriptor, 0);
        int code = errno;
        if (data == MAP_FAILED) {
            close(descriptor);
            map->size = 0;
            return fail(error, "Io", file, "%s", strerror(code));
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
        fail(error, "Io", MANIFEST, "%s", strerror(errno));
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
                fail(error, "ManifestSyntax", MANIFEST, "not JSON at offset %zu", (size_t)(j.at - j.text));
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
    free(dataset->logical);
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

size_t shardtool_shard_count(const shardtool_dataset *dataset, size_t i) { return dataset->splits[i].count; }

const char *shardtool_shard_file(const shardtool_dataset *dataset, size_t i, size_t k)
{
    return dataset->splits[i].shards[k].file;
}

int shardtool_is_opaque(const shardtool_dataset *dataset) { return dataset->opaque; }

shardtool_bytes shardtool_image_name(const shardtool_dataset *dataset) { return dataset->image; }

size_t shardtool_class_count(const shardtool_dataset *dataset) { return dataset->class_count; }

shardtool_bytes shardtool_class_name(const shardtool_dataset *dataset, size_t i) { return dataset->classes[i]; }

/* --- shards --- */

typedef struct {
    uint64_t offset, end;
    shardtool_bytes data;
} frame;

static int is_compressed(const uint8_t *p)
{
    return (p[0] == 0x1f && p[1] == 0x8b) ||
           (p[0] == 0x78 && (p[1] == 0x01 || p[1] == 0x5e || p[1] == 0x9c || p[1] == 0xda));
}

/* Checks the length of the frame at an offset. */
static int take_frame(const shardtool_dataset *dataset, const shard *h, uint64_t offset, uint64_t row, frame *f,
                      shardtool_error *error)
{
    const uint8_t *p = h->data.data + offset;
    uint64_t left = h->data.size - offset;
    if (left < 12)
        return fail_record(error, "TruncatedFrame", h->file, row, offset, "expected 12 bytes, %llu are left",
                           (unsigned long long)left);
    uint32_t found = masked(crc32c(dataset, 0, p, 8));
    if (found != u32(p + 8)) {
        if (offset == 0 && is_compressed(p))
            return fail(error, "CompressedRecords", h->file, "a gzip or zlib file: decompress it");
        return fail_record(error, "LengthCrc", h->file, row, offset, "expected %08x, found %08x", u32(p + 8), found);
    }
    uint64_t length = u64(p);
    if (left < 16 || length > left - 16)
        return fail_record(error, "TruncatedFrame", h->file, row, offset, "%llu bytes of data, %llu bytes are left",
                           (unsigned long long)length, (unsigned long long)left);
    f->offset = offset;
    f->end = offset + length + 16;
    f->data.data = p + 12;
    f->data.size = (size_t)length;
    return 0;
}

static int check_data(const shardtool_dataset *dataset, const shard *h, const frame *f, uint64_t row,
                      shardtool_error *error)
{
    uint32_t expected = u32(f->data.data + f->data.size);
    uint32_t found = masked(crc32c(dataset, 0, f->data.data, f->data.size));
    if (found != expected)
        return fail_record(error, "DataCrc", h->file, row, f->offset, "expected %08x, found %08x", expected, found);
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

static void add_integer(shardtool_feature *f, uint64_t word, void *out)
{
    if (out)
        ((int64_t *)out)[f->count] = as_i64(word);
    f->count++;
}

static int take_list(wire list, shardtool_feature *f, void *out)
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

/* Gets the list of a Feature. A list of another kind begins a new run; values of run `wanted` go to `out`. */
static int take_feature(wire message, shardtool_feature *f, uint32_t wanted, void *out)
{
    uint64_t number, value;
    wire list;
    int type, got;
    f->kind = SHARDTOOL_MISSING;
    f->count = 0;
    f->run = 0;
    while ((got = take_field(&message, &number, &type, &value, &list)) == 1) {
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
    return got;
}

static size_t value_size(int kind)
{
    if (kind == SHARDTOOL_BYTES)
        return sizeof(shardtool_bytes);
    return kind == SHARDTOOL_FLOAT ? sizeof(float) : sizeof(int64_t);
}

/* Joins the steps of a FeatureList. Their values go to `out`, the number of values of each step to `lengths`. */
static int take_steps(wire steps, shardtool_feature *joined, void *out, int64_t *lengths, uint64_t *step_count)
{
    wire message;
    int got;
    joined->kind = SHARDTOOL_MISSING;
    joined->count = 0;
    *step_count = 0;
    while ((got = take_message(&steps, 1, &message)) == 1) {
        shardtool_feature step;
        if (take_feature(message, &step, 0, NULL))
            return -1;
        if (lengths)
            lengths[*step_count] = (int64_t)step.count;
        ++*step_count;
        if (step.count == 0)
            continue;
        if (joined->kind == SHARDTOOL_MISSING)
            joined->kind = step.kind;
        if (joined->kind != step.kind)
            return -1;
        if (out)
            take_feature(message, &step, step.run, (char *)out + joined->count * value_size(step.kind));
        joined->count += step.count;
    }
    return got;
}

enum { FROM_FEATURE, FROM_STEPS, FROM_LENGTHS }; /* the source of a feature's values */

void shardtool_values(const shardtool_feature *feature, void *values)
{
    wire body = {feature->body.data, feature->body.data + feature->body.size};
    shardtool_feature again;
    uint64_t steps;
    if (feature->source == FROM_FEATURE)
        take_feature(body, &again, feature->run, values);
    else if (feature->source == FROM_STEPS)
        take_steps(body, &again, values, NULL, &steps);
    else
        take_steps(body, &again, NULL, values, &steps);
}

int shardtool_logical(const shardtool_dataset *dataset, shardtool_bytes name)
{
    for (size_t i = 0; i < dataset->logical_count; i++)
        if (equal(dataset->logical[i].name, name))
            return dataset->logical[i].type;
    return 0;
}

int shardtool_numbers(const shardtool_feature *feature, void *numbers)
{
    if (feature->kind != SHARDTOOL_BYTES)
        return 0;
    shardtool_bytes *strings = malloc((size_t)feature->count * sizeof *strings + 1);
    int good = strings != NULL;
    if (good)
        shardtool_values(feature, strings);
    for (uint64_t i = 0; good && i < feature->count; i++) {
        uint64_t word = 0;
        good = strings[i].size == sizeof word;
        for (size_t k = sizeof word; good && k > 0; k--)
            word = word << 8 | strings[i].data[k - 1];
        memcpy((char *)numbers + i * sizeof word, &word, sizeof word);
    }
    free(strings);
    return good;
}

/* --- records: features --- */

static int compare_features(const void *left, const void *right)
{
    const shardtool_feature *a = left, *b = right;
    int order = compare(&a->name, &b->name);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

typedef struct {
    shardtool_feature *list;
    size_t count, capacity;
    int out_of_memory;
} feature_table;

static int add_feature(feature_table *table, const shardtool_feature *feature)
{
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? 2 * table->capacity : 16;
        shardtool_feature *list = realloc(table->list, capacity * sizeof *list);
        if (!list) {
            table->out_of_memory = 1;
            return -1;
        }
        table->list = list;
        table->capacity = capacity;
    }
    table->list[table->count] = *feature;
    table->list[table->count].number = table->count;
    table->count++;
    return 0;
}

/* Sorts features by name, and keeps the last of each name if it has a list. */
static void keep_last(feature_table *table)
{
    size_t kept = 0;
    if (table->count)
        qsort(table->list, table->count, sizeof *table->list, compare_features);
    for (size_t i = 0; i < table->count; i++) {
        if (i + 1 < table->count && equal(table->list[i].name, table->list[i + 1].name))
            continue;
        if (table->list[i].kind != SHARDTOOL_MISSING)
            table->list[kept++] = table->list[i];
    }
    table->count = kept;
}

/* Gets the last key of an Entry; without one, the empty name. */
static int take_name(wire entry, shardtool_bytes *name)
{
    wire body;
    int got;
    *name = text("");
    while ((got = take_message(&entry, 1, &body)) == 1) {
        name->data = body.at;
        name->size = (size_t)(body.end - body.at);
        if (!is_utf8(name->data, name->size))
            return -1;
    }
    return got;
}

static void set_body(shardtool_feature *feature, wire body)
{
    feature->body.data = body.at;
    feature->body.size = (size_t)(body.end - body.at);
}

/* Adds an Entry of a Features message. Its last value is used. */
static int take_entry(wire entry, feature_table *table)
{
    shardtool_feature feature;
    wire body;
    int got;
    memset(&feature, 0, sizeof feature);
    if (take_name(entry, &feature.name))
        return -1;
    while ((got = take_message(&entry, 2, &body)) == 1) {
        if (take_feature(body, &feature, 0, NULL))
            return -1;
        set_body(&feature, body);
    }
    return got ? -1 : add_feature(table, &feature);
}

/* Adds an entry of a FeatureLists message, as NAME/lengths; `run` holds the kind of NAME, which is added later. */
static int take_list_entry(wire entry, feature_table *table)
{
    shardtool_feature feature, joined;
    wire body;
    int got;
    memset(&feature, 0, sizeof feature);
    feature.source = FROM_LENGTHS;
    if (take_name(entry, &feature.name))
        return -1;
    while ((got = take_message(&entry, 2, &body)) == 1) {
        uint64_t steps;
        /* A replaced list need not have values of one type, but must be well formed. */
        int mixed = take_steps(body, &joined, NULL, NULL, &steps);
        if (mixed) {
            wire rest = body, message;
            shardtool_feature step;
            int more;
            while ((more = take_message(&rest, 1, &message)) == 1)
                if (take_feature(message, &step, 0, NULL))
                    return -1;
            if (more)
                return -1;
        }
        feature.kind = SHARDTOOL_INT64;
        feature.run = mixed ? UINT32_MAX : (uint32_t)joined.kind;
        feature.count = steps;
        set_body(&feature, body);
    }
    return got ? -1 : add_feature(table, &feature);
}

typedef int (*take_entry_of)(wire entry, feature_table *table);

/* Adds the entries of the messages in one field of the record. */
static int take_entries(shardtool_bytes data, uint64_t field, take_entry_of take, feature_table *table)
{
    wire example = {data.data, data.data + data.size}, message, entry;
    int got, inner;
    while ((got = take_message(&example, field, &message)) == 1) {
        while ((inner = take_message(&message, 1, &entry)) == 1)
            if (take(entry, table))
                return -1;
        if (inner)
            return -1;
    }
    return got;
}

/* Adds to the features of the context NAME and NAME/lengths of each feature list. */
static int add_lists(shardtool_features *features, feature_table *table, const feature_table *lists)
{
    static const char suffix[] = "/lengths";
    size_t size = 0, used = 0;
    for (size_t i = 0; i < lists->count; i++)
        size += lists->list[i].name.size + sizeof suffix;
    features->names = malloc(size + 1);
    shardtool_bytes *names = calloc(table->count + 2 * lists->count + 1, sizeof *names);
    int good = features->names && names;
    table->out_of_memory = !good;
    for (size_t i = 0; good && i < table->count; i++)
        names[i] = table->list[i].name;
    size_t count = table->count;
    for (size_t i = 0; good && i < lists->count; i++) {
        shardtool_feature lengths = lists->list[i], joined = lengths;
        uint64_t steps;
        wire body = {lengths.body.data, lengths.body.data + lengths.body.size};
        if (lengths.run == UINT32_MAX) {
            good = 0;
            break;
        }
        take_steps(body, &joined, NULL, NULL, &steps);
        joined.source = FROM_STEPS;
        memcpy(features->names + used, lengths.name.data, lengths.name.size);
        memcpy(features->names + used + lengths.name.size, suffix, sizeof suffix - 1);
        lengths.name.data = features->names + used;
        lengths.name.size += sizeof suffix - 1;
        used += lengths.name.size;
        names[count++] = joined.name;
        names[count++] = lengths.name;
        good = add_feature(table, &lengths) == 0;
        if (good && joined.kind != SHARDTOOL_MISSING)
            good = add_feature(table, &joined) == 0;
    }
    good = good && !twice(names, count);
    free(names);
    return good ? 0 : -1;
}

void shardtool_free_features(shardtool_features *features)
{
    free(features->list);
    free(features->names);
    memset(features, 0, sizeof *features);
}

int shardtool_parse(const shardtool_record *record, shardtool_features *features, shardtool_error *error)
{
    feature_table table = {NULL, 0, 0, 0}, lists = {NULL, 0, 0, 0};
    memset(features, 0, sizeof *features);
    features->record = record;
    if (record->dataset->opaque)
        return 0;
    int good = take_entries(record->data, 1, take_entry, &table) == 0;
    if (good)
        keep_last(&table);
    if (good && record->dataset->sequences) {
        good = take_entries(record->data, 2, take_list_entry, &lists) == 0;
        if (good) {
            keep_last(&lists);
            good = add_lists(features, &table, &lists) == 0;
            keep_last(&table);
        }
    }
    free(lists.list);
    features->list = table.list;
    features->count = good ? table.count : 0;
    if (table.out_of_memory || lists.out_of_memory)
        return out_of_memory(error);
    if (!good)
        return fail_record(error, "MalformedExample", record->shard->file, record->row, record->offset,
                           "the data is not an Example");
    return 0;
}

const shardtool_feature *shardtool_find(const shardtool_features *features, shardtool_bytes name)
{
    size_t low = 0, high = features->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(&features->list[middle].name, &name);
        if (order == 0)
            return &features->list[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

int shardtool_one(const shardtool_features *features, shardtool_bytes name, int kind, void *value)
{
    const shardtool_feature *feature = name.data ? shardtool_find(features, name) : NULL;
    if (!feature || feature->kind != kind || feature->count != 1)
        return 0;
    shardtool_values(feature, value);
    return 1;
}

shardtool_bytes shardtool_own_key(const shardtool_features *features, char *number)
{
    static const char *const names[] = {"image/key", "image/filename"};
    const shardtool_record *record = features->record;
    shardtool_bytes key;
    for (size_t i = 0; i < LENGTH(names); i++)
        if (shardtool_one(features, text(names[i]), SHARDTOOL_BYTES, &key))
            return key;
    sprintf(number, "%s#%llu", record->shard->file, (unsigned long long)record->row);
    return text(number);
}

int shardtool_own_image(const shardtool_features *features, shardtool_bytes *image)
{
    return shardtool_one(features, features->record->dataset->image, SHARDTOOL_BYTES, image);
}

int shardtool_class_id(const shardtool_features *features, int64_t *class_id)
{
    const shardtool_dataset *dataset = features->record->dataset;
    int64_t label, offset = dataset->label_offset;
    if (!shardtool_one(features, dataset->label, SHARDTOOL_INT64, &label))
        return 0;
    if (label < offset || (offset < 0 && label > INT64_MAX + offset))
        return 0;
    *class_id = label - offset;
    return !dataset->class_count || (uint64_t)*class_id < dataset->class_count;
}

/* --- zstd frames: their headers (RFC 8878, 3.1.1) --- */

/* What a check of pixels or of a chunk found. */
enum { GOOD, WRONG_LENGTH, UNDECODABLE, NOT_DECODED };

static uint64_t little_endian(const uint8_t *p, size_t size)
{
    uint64_t value = 0;
    while (size > 0)
        value = value << 8 | p[--size];
    return value;
}

/* Checks that there is one frame without a dictionary, whose header says that it has `size` bytes of contents. */
static int check_zstd(shardtool_bytes data, uint64_t size)
{
    static const size_t dictionary_sizes[] = {0, 1, 2, 4}, content_sizes[] = {0, 2, 4, 8};
    const uint8_t *p = data.data;
    if (data.size < 5 || memcmp(p, "\x28\xb5\x2f\xfd", 4) != 0 || p[4] & 8)
        return UNDECODABLE;
    size_t single = p[4] >> 5 & 1, dictionary = dictionary_sizes[p[4] & 3], content = content_sizes[p[4] >> 6];
    if (p[4] >> 6 == 0)
        content = single;
    uint64_t at = 5 + (1 - single) + dictionary + content;
    if (at > data.size)
        return UNDECODABLE;
    if (content == 0 || little_endian(p + at - content, content) + (content == 2 ? 256 : 0) != size)
        return WRONG_LENGTH;
    if (little_endian(p + at - content - dictionary, dictionary) != 0)
        return UNDECODABLE;
    for (uint64_t last = 0; !last;) {
        if (data.size - at < 3)
            return UNDECODABLE;
        uint64_t header = little_endian(p + at, 3), type = header >> 1 & 3, stored = type == 1 ? 1 : header >> 3;
        last = header & 1;
        at += 3;
        if (type == 3 || stored > data.size - at)
            return UNDECODABLE;
        at += stored;
    }
    at += p[4] & 4 ? 4 : 0;
    return at == data.size ? NOT_DECODED : UNDECODABLE;
}

/* --- images --- */

static int has_brand(shardtool_bytes image, const char *const *brands, size_t count)
{
    uint64_t end = (uint64_t)image.data[0] << 24 | image.data[1] << 16 | image.data[2] << 8 | image.data[3];
    end = end < image.size ? end : image.size;
    end = end < 256 ? end : 256;
    for (uint64_t at = 8; at + 4 <= end || at == 8; at += at == 8 ? 8 : 4)
        for (size_t i = 0; at + 4 <= image.size && i < count; i++)
            if (memcmp(image.data + at, brands[i], 4) == 0)
                return 1;
    return 0;
}

/* Returns 1 if the image begins like one of a format. */
static int has_known_signature(shardtool_bytes image)
{
    static const struct {
        const char *bytes;
        size_t size;
    } starts[] = {{"\xff\xd8\xff", 3},        {"\x89PNG\r\n\x1a\n", 8},
                  {"GIF87a", 6},              {"GIF89a", 6},
                  {"II\x2a\0", 4},            {"II\x2b\0", 4},
                  {"MM\0\x2a", 4},            {"MM\0\x2b", 4},
                  {"\xff\x0a", 2},            {"\0\0\0\x0cJXL \r\n\x87\n", 12},
                  {"\xff\x4f\xff\x51", 4},    {"\0\0\0\x0cjP  \r\n\x87\n", 12}};
    static const uint32_t bmp_headers[] = {12, 16, 40, 52, 56, 64, 108, 124};
    static const char *const brands[] = {"avif", "avis", "heic", "heix", "heim",
                                         "heis", "hevc", "hevx", "mif1", "msf1"};
    for (size_t i = 0; i < LENGTH(starts); i++)
        if (image.size >= starts[i].size && memcmp(image.data, starts[i].bytes, starts[i].size) == 0)
            return 1;
    if (image.size >= 12 && memcmp(image.data, "RIFF", 4) == 0 && memcmp(image.data + 8, "WEBP", 4) == 0)
        return 1;
    if (image.size >= 18 && memcmp(image.data, "BM", 2) == 0)
        for (size_t i = 0; i < LENGTH(bmp_headers); i++)
            if (u32(image.data + 14) == bmp_headers[i])
                return 1;
    return image.size >= 8 && memcmp(image.data + 4, "ftyp", 4) == 0 && has_brand(image, brands, LENGTH(brands));
}

static int fail_decode(const shardtool_features *features, int found, const char *what, shardtool_error *error)
{
    static const char *const names[] = {"", "PixelsLength", "ImageDecode", "NotDecoded"};
    static const char *const texts[] = {"", "another length than its sizes say", "cannot be decoded",
                                        "this reader does not decode it"};
    const shardtool_record *record = features->record;
    return fail_record(error, names[found], record->shard->file, record->row, record->offset, "%.80s: %s", what,
                       texts[found]);
}

/* Returns 1 and height × width × 3. Returns 0 if height or width is absent or less than 1, or their product over
 * 2⁶³ − 1. */
static int raw_size(const shardtool_features *features, shardtool_raw_pixels *pixels, uint64_t *size)
{
    int64_t height, width;
    if (!shardtool_one(features, text("image/height"), SHARDTOOL_INT64, &height) ||
        !shardtool_one(features, text("image/width"), SHARDTOOL_INT64, &width))
        return 0;
    if (height < 1 || width < 1 || height > INT64_MAX / 3 / width)
        return 0;
    pixels->height = (uint64_t)height;
    pixels->width = (uint64_t)width;
    *size = pixels->height * pixels->width * 3;
    return 1;
}

int shardtool_pixels(const shardtool_features *features, shardtool_raw_pixels *pixels, shardtool_error *error)
{
    static const char *const known[] = {"jpeg", "png", "webp", "gif", "bmp", "tiff", "avif", "jxl", "jp2", "heif"};
    shardtool_bytes format, image;
    uint64_t size;
    if (!shardtool_own_image(features, &image))
        return 0;
    if (!shardtool_one(features, text("image/format"), SHARDTOOL_BYTES, &format))
        return fail_decode(features, has_known_signature(image) ? NOT_DECODED : UNDECODABLE, "image", error);
    for (size_t i = 0; i < LENGTH(known); i++)
        if (equal_folded(format, known[i]))
            return fail_decode(features, NOT_DECODED, known[i], error);
    int compressed = equal(format, text("raw-zstd"));
    if (!compressed && !equal(format, text("raw")))
        return fail_decode(features, UNDECODABLE, "an image of an unknown format", error);
    if (!raw_size(features, pixels, &size))
        return fail_decode(features, WRONG_LENGTH, "pixels", error);
    if (compressed)
        return fail_decode(features, check_zstd(image, size), "raw-zstd", error);
    if (image.size != size)
        return fail_decode(features, WRONG_LENGTH, "pixels", error);
    pixels->rgb = image;
    return 1;
}

/* --- arrays --- */

#define MAX_DIMENSIONS 63 /* of lengths over 1, as their product is below 2⁶³ */

/* Finds the feature NAME SUFFIX. */
static const shardtool_feature *find_part(const shardtool_features *features, shardtool_bytes name, const char *suffix)
{
    shardtool_bytes whole = {NULL, name.size + strlen(suffix)};
    uint8_t *joined = malloc(whole.size + 1);
    if (!joined)
        return NULL;
    if (name.size)
        memcpy(joined, name.data, name.size);
    memcpy(joined + name.size, suffix, strlen(suffix));
    whole.data = joined;
    const shardtool_feature *found = shardtool_find(features, whole);
    free(joined);
    return found;
}

int shardtool_is_array(const shardtool_features *features, size_t i, shardtool_bytes *name)
{
    *name = features->list[i].name;
    if (!ends_with(*name, "/codec"))
        return 0;
    name->size -= strlen("/codec");
    return find_part(features, *name, "/shape") && find_part(features, *name, "/chunk") &&
           find_part(features, *name, "/dtype");
}

/* Multiplies numbers ≥ 0. Returns 0 if the product is over 2⁶³ − 1. */
static int multiply(const int64_t *numbers, uint64_t count, uint64_t *product)
{
    int fits = 1;
    *product = 1;
    for (uint64_t i = 0; i < count; i++) {
        if (numbers[i] == 0) {
            *product = 0;
            return 1;
        }
        fits = fits && *product <= (uint64_t)INT64_MAX / (uint64_t)numbers[i];
        *product *= fits ? (uint64_t)numbers[i] : 1;
    }
    return fits;
}

/* Gets a list of lengths, to be freed, and their product. Returns NULL if one is less than `least`, or the product is
 * over 2⁶³ − 1. */
static int64_t *take_lengths(const shardtool_feature *feature, int64_t least, uint64_t *product)
{
    if (!feature || feature->kind != SHARDTOOL_INT64 || feature->count == 0)
        return NULL;
    int64_t *lengths = calloc(feature->count, sizeof *lengths);
    if (!lengths)
        return NULL;
    shardtool_values(feature, lengths);
    int good = 1;
    for (uint64_t i = 0; i < feature->count; i++)
        good = good && lengths[i] >= least;
    if (good && multiply(lengths, feature->count, product))
        return lengths;
    free(lengths);
    return NULL;
}

static uint64_t dtype_width(shardtool_bytes dtype)
{
    static const struct {
        const char *name;
        uint64_t width;
    } known[] = {{"u8", 1},  {"i8", 1},  {"u16", 2}, {"i16", 2},  {"u32", 4}, {"i32", 4}, {"u64", 8},
                 {"i64", 8}, {"f16", 2}, {"bf16", 2}, {"f32", 4}, {"f64", 8}, {"bool", 1}};
    for (size_t i = 0; i < LENGTH(known); i++)
        if (equal(dtype, text(known[i].name)))
            return known[i].width;
    return 0;
}

/* An array without its dimensions of length 1, which do not change the order of elements. */
typedef struct {
    size_t dimensions;
    uint64_t shape[MAX_DIMENSIONS], chunk[MAX_DIMENSIONS], stride[MAX_DIMENSIONS], width;
} grid;

/* Moves to the next place in C order: the last dimension varies fastest. */
static void advance(uint64_t *place, const uint64_t *shape, const uint64_t *step, size_t dimensions)
{
    for (size_t i = dimensions; i-- > 0;) {
        if (shape[i] - place[i] > step[i]) {
            place[i] += step[i];
            return;
        }
        place[i] = 0;
    }
}

static uint64_t chunk_elements(const grid *g, const uint64_t *place, uint64_t *size)
{
    uint64_t elements = 1;
    for (size_t i = 0; i < g->dimensions; i++) {
        uint64_t left = g->shape[i] - place[i];
        size[i] = g->chunk[i] < left ? g->chunk[i] : left;
        elements *= size[i];
    }
    return elements;
}

/* Checks all chunks. */
static int check_chunks(const grid *g, const shardtool_bytes *chunks, uint64_t count, int compressed)
{
    uint64_t place[MAX_DIMENSIONS] = {0}, size[MAX_DIMENSIONS];
    int found = GOOD;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t elements = chunk_elements(g, place, size);
        if (elements > (uint64_t)INT64_MAX / g->width)
            return WRONG_LENGTH;
        if (compressed)
            found = check_zstd(chunks[i], elements * g->width);
        else if (chunks[i].size != elements * g->width)
            found = WRONG_LENGTH;
        if (found == WRONG_LENGTH || found == UNDECODABLE)
            return found;
        advance(place, g->shape, g->chunk, g->dimensions);
    }
    return found;
}

/* Copies a chunk into the whole array, row by row. */
static void copy_chunk(const grid *g, const uint64_t *place, const uint64_t *size, shardtool_bytes chunk, uint8_t *out)
{
    static const uint64_t one_step[MAX_DIMENSIONS] = {
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    uint64_t inside[MAX_DIMENSIONS] = {0};
    size_t outer = g->dimensions ? g->dimensions - 1 : 0;
    uint64_t row = g->dimensions ? size[outer] * g->width : g->width;
    for (uint64_t at = 0; at < chunk.size; at += row) {
        uint64_t to = 0;
        for (size_t i = 0; i < g->dimensions; i++)
            to += (place[i] + inside[i]) * g->stride[i];
        memcpy(out + to, chunk.data + at, row);
        advance(inside, size, one_step, outer);
    }
}

/* Joins the chunks of an array that has elements. */
static int join_chunks(const grid *g, const shardtool_feature *feature, int compressed, shardtool_array *array)
{
    shardtool_bytes *chunks = calloc(feature->count, sizeof *chunks);
    uint64_t place[MAX_DIMENSIONS] = {0}, size[MAX_DIMENSIONS];
    if (!chunks)
        return -1;
    shardtool_values(feature, chunks);
    int found = check_chunks(g, chunks, feature->count, compressed);
    for (uint64_t i = 0; found == GOOD && i < feature->count; i++)
        array->size += chunks[i].size;
    if (found == GOOD && !(array->data = malloc(array->size)))
        found = -1;
    for (uint64_t i = 0; found == GOOD && i < feature->count; i++) {
        chunk_elements(g, place, size);
        copy_chunk(g, place, size, chunks[i], array->data);
        advance(place, g->shape, g->chunk, g->dimensions);
    }
    free(chunks);
    return found;
}

/* Gets an array, given its shape and the shape of a chunk. */
static int take_array(const shardtool_features *features, shardtool_bytes name, const int64_t *shape,
                      const int64_t *chunk, uint64_t dimensions, shardtool_array *array)
{
    const shardtool_feature *feature = shardtool_find(features, name), *part = find_part(features, name, "/codec");
    shardtool_bytes codec = {NULL, 0};
    uint64_t expected = 1, stride;
    grid g;
    memset(&g, 0, sizeof g);
    if (part && part->kind == SHARDTOOL_BYTES && part->count == 1)
        shardtool_values(part, &codec);
    part = find_part(features, name, "/dtype");
    if (part && part->kind == SHARDTOOL_BYTES && part->count == 1)
        shardtool_values(part, &array->dtype);
    g.width = dtype_width(array->dtype);
    int compressed = equal(codec, text("zstd"));
    if (!g.width || (!compressed && !equal(codec, text("raw"))))
        return UNDECODABLE;
    for (uint64_t i = 0; i < dimensions; i++)
        if (shape[i] == 0)
            expected = 0;
    for (uint64_t i = 0; expected && i < dimensions; i++) {
        expected *= (uint64_t)shape[i] / (uint64_t)chunk[i] + (shape[i] % chunk[i] != 0);
        if (shape[i] > 1) {
            g.shape[g.dimensions] = (uint64_t)shape[i];
            g.chunk[g.dimensions++] = (uint64_t)chunk[i];
        }
    }
    if (!feature || feature->kind != SHARDTOOL_BYTES)
        return expected == 0 ? GOOD : WRONG_LENGTH;
    if (feature->count != expected)
        return WRONG_LENGTH;
    stride = g.width;
    for (size_t i = g.dimensions; i-- > 0; stride *= g.shape[i])
        g.stride[i] = stride;
    return expected == 0 ? GOOD : join_chunks(&g, feature, compressed, array);
}

int shardtool_get_array(const shardtool_features *features, shardtool_bytes name, shardtool_array *array,
                        shardtool_error *error)
{
    const shardtool_feature *shapes = find_part(features, name, "/shape"), *parts = find_part(features, name, "/chunk");
    uint64_t elements, chunk_product;
    memset(array, 0, sizeof *array);
    array->shape = take_lengths(shapes, 0, &elements);
    int64_t *chunk = take_lengths(parts, 1, &chunk_product);
    int found = UNDECODABLE;
    if (array->shape && chunk && shapes->count == parts->count) {
        array->dimensions = shapes->count;
        found = take_array(features, name, array->shape, chunk, array->dimensions, array);
    }
    free(chunk);
    if (found == GOOD)
        return 0;
    free(array->shape);
    free(array->data);
    memset(array, 0, sizeof *array);
    return found < 0 ? out_of_memory(error) : fail_decode(features, found, "an array", error);
}

/* --- index --- */

#define ENTRY_BYTES 72

static uint64_t element_width(int element)
{
    static const uint64_t widths[] = {1, 4, 8, 8, 4};
    return widths[element];
}

static uint64_t aligned(uint64_t offset) { return (offset + 63) / 64 * 64; }

static int all_zero(const uint8_t *data, uint64_t from, uint64_t to, uint64_t size)
{
    for (; from < to && from < size; from++)
        if (data[from])
            return 0;
    return 1;
}

static int layout(shardtool_error *error, const char *file, const char *what)
{
    return fail(error, "IndexLayout", file, "%s", what);
}

static int is_absent(const part *p) { return p->offset == 0 && p->length == 0 && p->crc == 0; }

/* Reads an entry of the directory. `free_from` is where the preceding part ends. */
static int read_entry(const shard_index *index, const uint8_t *p, column *c, uint64_t *free_from, const char *file,
                      shardtool_error *error)
{
    uint64_t records = index->records, size = index->map.size;
    c->kind = p[0];
    c->element = p[1];
    for (int k = 0; k < 3; k++) {
        c->parts[k].offset = u64(p + 8 + 16 * k);
        c->parts[k].length = u64(p + 16 + 16 * k);
        c->parts[k].crc = u32(p + 56 + 4 * k);
    }
    const part *validity = &c->parts[VALIDITY], *offsets = &c->parts[OFFSETS], *values = &c->parts[VALUES];
    if (u32(p + 4) || u32(p + 68))
        return layout(error, file, "a reserved field is not 0");
    if (c->kind > VARIABLE || c->element > OF_F32 || (c->kind == VARIABLE) != (c->element == OF_BYTES))
        return layout(error, file, "a column of an invalid kind or element");
    if (validity->length == 0 && !is_absent(validity))
        return layout(error, file, "an absent validity has an offset or a CRC");
    if (c->kind == FIXED && !is_absent(offsets))
        return layout(error, file, "a fixed-width column has offsets");
    if (validity->length && validity->length != records / 8 + (records % 8 != 0))
        return layout(error, file, "the length of a validity is not that of its records");
    if (c->kind == VARIABLE && (offsets->length % 8 || offsets->length / 8 == 0 || offsets->length / 8 - 1 != records))
        return layout(error, file, "the length of offsets is not (records + 1) × 8");
    uint64_t width = element_width(c->element);
    if (c->kind == FIXED && (values->length % width || values->length / width != records))
        return layout(error, file, "the length of values is not records × width");
    for (int k = 0; k < 3; k++) {
        const part *present = &c->parts[k];
        if ((k == VALIDITY && !present->length) || (k == OFFSETS && c->kind == FIXED))
            continue;
        if (present->offset != aligned(*free_from) || present->offset > size ||
            present->length > size - present->offset)
            return layout(error, file, "a part has the wrong offset, or runs past the index");
        *free_from = present->offset + present->length;
    }
    return 0;
}

/* `end` is the directory's end. */
static int read_directory(shard_index *index, const char *file, uint32_t count, uint64_t end, shardtool_error *error)
{
    const uint8_t *data = index->map.data;
    uint64_t at = 64 + ENTRY_BYTES * (uint64_t)count, names_end = at, free_from = end;
    if (at > end)
        return layout(error, file, "entries run past the directory");
    for (uint32_t i = 0; i < count; i++)
        names_end += u16(data + 64 + ENTRY_BYTES * (uint64_t)i + 2);
    if (names_end != end)
        return layout(error, file, "names do not fill the directory");
    index->columns = calloc((size_t)count + 1, sizeof *index->columns);
    shardtool_bytes *names = calloc((size_t)count + 1, sizeof *names);
    int good = index->columns && names;
    if (!good)
        out_of_memory(error);
    for (uint32_t i = 0; good && i < count; i++) {
        const uint8_t *p = data + 64 + ENTRY_BYTES * (uint64_t)i;
        column *c = &index->columns[i];
        c->name.data = data + at;
        c->name.size = u16(p + 2);
        at += c->name.size;
        names[i] = c->name;
        good = read_entry(index, p, c, &free_from, file, error) == 0;
        if (good && (c->name.size == 0 || !is_utf8(c->name.data, c->name.size)))
            good = layout(error, file, "a name is empty, or is not UTF-8") == 0;
    }
    if (good && twice(names, count))
        good = layout(error, file, "two columns have the same name") == 0;
    if (good && aligned(free_from) != index->map.size)
        good = layout(error, file, "bytes are left over") == 0;
    free(names);
    index->count = good ? count : 0;
    return good ? 0 : -1;
}

static int is_variable(const column *c) { return c->kind == VARIABLE; }

static int is_feature_column(const column *c)
{
    return c->kind == VARIABLE || c->element == OF_I64 || c->element == OF_F32;
}

static int check_columns(shard_index *index, const char *file, shardtool_error *error)
{
    const struct {
        const char *name;
        int kind, element;
        column **slot;
    } known[] = {{"record_offset", FIXED, OF_U64, &index->record_offset},
                 {"image_offset", FIXED, OF_U32, &index->image_offset},
                 {"image_length", FIXED, OF_U32, &index->image_length},
                 {"key", VARIABLE, OF_BYTES, &index->key},
                 {"jpeg_entries", VARIABLE, OF_BYTES, NULL}};
    for (size_t i = 0; i < index->count; i++) {
        column *c = &index->columns[i];
        int is_known = starts_with(c->name, "values:"), good = !is_known || is_variable(c);
        for (size_t k = 0; k < LENGTH(known); k++) {
            if (!equal(c->name, text(known[k].name)))
                continue;
            is_known = 1;
            good = c->kind == known[k].kind && c->element == known[k].element;
            if (known[k].slot)
                *known[k].slot = c;
        }
        if (starts_with(c->name, "feature:"))
            good = is_feature_column(c);
        if (!good || (is_known && c->parts[VALIDITY].length))
            return fail(error, "IndexColumn", file, "a column has another kind, element or validity than it must");
    }
    for (size_t k = 0; k < LENGTH(known); k++)
        if (known[k].slot && !*known[k].slot)
            return fail(error, "IndexColumn", file, "column %s is absent", known[k].name);
    return 0;
}

static int read_index(shardtool_dataset *dataset, const shard *h, shard_index *index, shardtool_error *error)
{
    const char *file = h->index_file;
    const uint8_t *p = index->map.data;
    uint64_t size = index->map.size;
    if (size < 64)
        return fail(error, "IndexTruncated", file, "expected a header of 64 bytes, found %llu",
                    (unsigned long long)size);
    if (memcmp(p, "\x89STX\r\n\x1a\n", 8) == 0)
        return fail(error, "IndexMagic", file, "an index of version 0.1: run `shardtool repair`");
    if (memcmp(p, "\x89STI\r\n\x1a\n", 8) != 0)
        return fail(error, "IndexMagic", file, "the magic bytes do not match");
    if (crc32c(dataset, 0, p, 60) != u32(p + 60))
        return fail(error, "IndexHeaderCrc", file, "expected %08x, found %08x", u32(p + 60), crc32c(dataset, 0, p, 60));
    if (u16(p + 8) != 1)
        return fail(error, "IndexVersion", file, "expected major version 1, found %d", u16(p + 8));
    if (u32(p + 12))
        return fail(error, "IndexFlags", file, "required flags %08x", u32(p + 12));
    if (size != u64(p + 48))
        return fail(error, size < u64(p + 48) ? "IndexTruncated" : "IndexLayout", file,
                    "expected %llu bytes, found %llu", (unsigned long long)u64(p + 48), (unsigned long long)size);
    uint64_t directory = u32(p + 44), end = 64 + directory;
    if (end > size)
        return layout(error, file, "the directory runs past the index");
    if (crc32c(dataset, 0, p + 64, directory) != u32(p + 56))
        return fail(error, "IndexDirectoryCrc", file, "expected %08x, found %08x", u32(p + 56),
                    crc32c(dataset, 0, p + 64, directory));
    if (!all_zero(p, end, aligned(end), size))
        return fail(error, "IndexPadding", file, "bytes after the directory are not zero");
    index->records = u64(p + 24);
    if (read_directory(index, file, u32(p + 20), end, error))
        return -1;
    if (index->records != h->records)
        return fail(error, "RecordCount", file, "expected %llu records, found %llu", (unsigned long long)h->records,
                    (unsigned long long)index->records);
    if (u64(p + 32) != h->bytes || u32(p + 40) != h->crc)
        return fail(error, "IndexMismatch", file, "length or CRC of the shard is not the manifest's");
    return check_columns(index, file, error);
}

/* Opens the index of a shard. One that cannot be opened is not tried again. */
static int open_index(shardtool_dataset *dataset, shard *h, shardtool_error *error)
{
    shard_index *index = &h->index;
    if (index->state == 0) {
        index->state = 1;
        if (map_file(dataset->folder, h->index_file, "MissingIndex", &index->map, &index->damage) ||
            read_index(dataset, h, index, &index->damage)) {
            free(index->columns);
            unmap(&index->map);
            index->columns = NULL;
            index->count = 0;
            index->state = -1;
        }
    }
    if (index->state < 0)
        *error = index->damage;
    return index->state < 0 ? -1 : 0;
}

static uint64_t offset_at(const shard_index *index, const column *c, uint64_t row)
{
    return u64(index->map.data + c->parts[OFFSETS].offset + 8 * row);
}

static uint64_t number_at(const shard_index *index, const column *c, uint64_t row)
{
    uint64_t width = element_width(c->element);
    const uint8_t *p = index->map.data + c->parts[VALUES].offset + width * row;
    return width == 8 ? u64(p) : u32(p);
}

static shardtool_bytes bytes_at(const shard_index *index, const column *c, uint64_t row)
{
    uint64_t from = offset_at(index, c, row);
    shardtool_bytes bytes = {index->map.data + c->parts[VALUES].offset + from,
                             (size_t)(offset_at(index, c, row + 1) - from)};
    return bytes;
}

static int is_valid(const shard_index *index, const column *c, uint64_t row)
{
    return !c->parts[VALIDITY].length || index->map.data[c->parts[VALIDITY].offset + row / 8] >> row % 8 & 1;
}

static const char *check_offsets(const shard_index *index, const column *c)
{
    uint64_t before = 0;
    for (uint64_t row = 0; row <= index->records; row++) {
        uint64_t offset = offset_at(index, c, row);
        if (row == 0 && offset != 0)
            return "the first offset is not 0";
        if (offset < before || offset > INT64_MAX)
            return "offsets decrease";
        before = offset;
    }
    if (before != c->parts[VALUES].length)
        return "the last offset is not the length of the values";
    return NULL;
}

static const char *check_validity(const shard_index *index, const column *c)
{
    uint64_t nulls = 0;
    for (uint64_t row = 0; row < 8 * c->parts[VALIDITY].length; row++) {
        int valid = is_valid(index, c, row);
        if (row >= index->records && valid)
            return "unused bits of the validity are not 0";
        if (row >= index->records || valid)
            continue;
        nulls++;
        if (c->kind == FIXED ? number_at(index, c, row) != 0 : bytes_at(index, c, row).size != 0)
            return "a value under a null";
    }
    return nulls ? NULL : "a validity without nulls";
}

static int check_contents(const shardtool_dataset *dataset, const shard *h, const column *c, shardtool_error *error)
{
    const shard_index *index = &h->index;
    const uint8_t *data = index->map.data;
    const char *problem = NULL;
    for (int k = 0; k < 3; k++) {
        uint64_t end = c->parts[k].offset + c->parts[k].length;
        uint32_t found = crc32c(dataset, 0, data + c->parts[k].offset, c->parts[k].length);
        if (found != c->parts[k].crc)
            return fail(error, "ColumnCrc", h->index_file, "expected %08x, found %08x", c->parts[k].crc, found);
        if (!all_zero(data, end, aligned(end), index->map.size))
            return fail(error, "IndexPadding", h->index_file, "bytes at %llu are not zero", (unsigned long long)end);
    }
    if (c->kind == VARIABLE)
        problem = check_offsets(index, c);
    if (!problem && c->parts[VALIDITY].length)
        problem = check_validity(index, c);
    for (uint64_t row = 0; !problem && starts_with(c->name, "values:") && row < index->records; row++)
        if (bytes_at(index, c, row).size % 12)
            problem = "a row of value ranges is not a multiple of 12 bytes";
    return problem ? fail(error, "ColumnValue", h->index_file, "%s", problem) : 0;
}

/* Checks CRCs, padding, offsets and validity of a column, once. */
static int check_column(const shardtool_dataset *dataset, shard *h, column *c, shardtool_error *error)
{
    if (c->state == 0)
        c->state = check_contents(dataset, h, c, &c->damage) ? -1 : 1;
    if (c->state < 0)
        *error = c->damage;
    return c->state < 0 ? -1 : 0;
}

int shardtool_index(shardtool_dataset *dataset, size_t i, size_t k, shard **index, shardtool_error *error)
{
    if (i >= dataset->split_count || k >= dataset->splits[i].count)
        return fail(error, "Argument", "", "no such split or shard");
    *index = &dataset->splits[i].shards[k];
    return open_index(dataset, *index, error);
}

uint64_t shardtool_rows(const shard *h) { return h->index.records; }

uint64_t shardtool_first_record(const shard *h) { return h->first; }

size_t shardtool_column_count(const shard *h) { return h->index.count; }

shardtool_bytes shardtool_column_name(const shard *h, size_t i) { return h->index.columns[i].name; }

int shardtool_check_column(shardtool_dataset *dataset, shard *h, size_t i, shardtool_error *error)
{
    if (i >= h->index.count)
        return fail(error, "Argument", "", "no such column");
    return check_column(dataset, h, &h->index.columns[i], error);
}

int shardtool_cell(shardtool_dataset *dataset, shard *h, size_t i, uint64_t row, shardtool_cell_value *value,
                   shardtool_error *error)
{
    const shard_index *index = &h->index;
    if (i >= index->count || row >= index->records)
        return fail(error, "Argument", "", "no such column or row");
    column *c = &index->columns[i];
    if (check_column(dataset, h, c, error))
        return -1;
    memset(value, 0, sizeof *value);
    value->is_null = !is_valid(index, c, row);
    value->kind = c->element == OF_BYTES ? SHARDTOOL_BYTES : c->element == OF_F32 ? SHARDTOOL_FLOAT : SHARDTOOL_INT64;
    if (c->kind == VARIABLE)
        value->bytes = bytes_at(index, c, row);
    else if (c->element == OF_F32)
        value->bits = (uint32_t)number_at(index, c, row);
    else
        value->integer = as_i64(number_at(index, c, row));
    return 0;
}

int shardtool_lookup(shardtool_dataset *dataset, size_t i, shardtool_bytes key, uint64_t *id, shardtool_error *error)
{
    if (i >= dataset->split_count)
        return fail(error, "Argument", "", "no such split");
    for (size_t k = 0; k < dataset->splits[i].count; k++) {
        shard *h = &dataset->splits[i].shards[k];
        if (open_index(dataset, h, error) || check_column(dataset, h, h->index.key, error))
            return -1;
        for (uint64_t row = 0; row < h->records; row++)
            if (equal(bytes_at(&h->index, h->index.key, row), key)) {
                *id = h->first + row;
                return 1;
            }
    }
    return 0;
}

/* --- record i --- */

static int shard_length(const shard *h, shardtool_error *error)
{
    return fail(error, "ShardLength", h->file, "expected %llu bytes, found %llu", (unsigned long long)h->bytes,
                (unsigned long long)h->data.size);
}

int shardtool_read(shardtool_dataset *dataset, size_t number, uint64_t id, int flags, shardtool_record *record,
                   shardtool_error *error)
{
    if (number >= dataset->split_count || id >= dataset->splits[number].records)
        return fail(error, "Argument", "", "no such split or record");
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
    record->offset = number_at(&h->index, h->index.record_offset, record->row);
    uint64_t next = h->bytes;
    int shorter = h->data.size < h->bytes;
    if (record->row + 1 < h->records)
        next = number_at(&h->index, h->index.record_offset, record->row + 1);
    frame f;
    if (record->offset >= h->data.size) {
        if (!shorter)
            return fail_record(error, "IndexMismatch", h->index_file, record->row, record->offset,
                               "the frame's offset is past the shard's end");
        shard_length(h, error);
        error->record = (int64_t)record->row;
        return -1;
    }
    if (take_frame(dataset, h, record->offset, record->row, &f, error)) {
        if (shorter && strcmp(error->name, "TruncatedFrame") == 0) {
            shard_length(h, error);
            error->record = (int64_t)record->row;
        }
        return -1;
    }
    record->data = f.data;
    if (!(flags & SHARDTOOL_TRUST_DATA) && check_data(dataset, h, &f, record->row, error))
        return -1;
    if (f.end != next)
        return fail_record(error, "IndexMismatch", h->index_file, record->row, record->offset,
                           "the frame does not end where the next begins");
    return 0;
}

const char *shardtool_file(const shardtool_record *record) { return record->shard->file; }

int shardtool_key(const shardtool_record *record, shardtool_bytes *key, shardtool_error *error)
{
    shard *h = record->shard;
    if (check_column(record->dataset, h, h->index.key, error))
        return -1;
    *key = bytes_at(&h->index, h->index.key, record->row);
    return 0;
}

int shardtool_image(const shardtool_record *record, shardtool_bytes *image, shardtool_error *error)
{
    shard *h = record->shard;
    if (check_column(record->dataset, h, h->index.image_offset, error) ||
        check_column(record->dataset, h, h->index.image_length, error))
        return -1;
    uint64_t offset = number_at(&h->index, h->index.image_offset, record->row);
    uint64_t length = number_at(&h->index, h->index.image_length, record->row);
    if (offset + length > record->data.size)
        return fail_record(error, "IndexMismatch", h->index_file, record->row, record->offset,
                           "the image's range is past the record's end");
    image->data = record->data.data + offset;
    image->size = (size_t)length;
    return offset != 0;
}

/* --- SHA-256 (FIPS 180-4) --- */

static uint32_t rotated(uint32_t x, int by) { return x >> by | x << (32 - by); }

static void sha256_block(uint32_t state[8], const uint8_t *p)
{
    static const uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotated(a, 7) ^ rotated(a, 18) ^ a >> 3);
        w[i] += w[i - 7] + (rotated(b, 17) ^ rotated(b, 19) ^ b >> 10);
    }
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t e = s[4], a = s[0];
        uint32_t t = s[7] + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + ((e & s[5]) ^ (~e & s[6]));
        t += k[i] + w[i];
        uint32_t u = (rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + ((a & s[1]) ^ (a & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t;
        s[0] = t + u;
    }
    for (int i = 0; i < 8; i++)
        state[i] += s[i];
}

/* Writes 64 hex digits and NUL. */
static void sha256_hex(const uint8_t *p, uint64_t size, char *hex)
{
    uint32_t state[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                         0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    uint8_t end[128] = {0};
    uint64_t left = size % 64, length = left < 56 ? 64 : 128;
    for (uint64_t at = 0; at + 64 <= size; at += 64)
        sha256_block(state, p + at);
    if (left)
        memcpy(end, p + size - left, left);
    end[left] = 0x80;
    for (int i = 0; i < 8; i++)
        end[length - 1 - (uint64_t)i] = (uint8_t)(8 * size >> 8 * i);
    for (uint64_t at = 0; at < length; at += 64)
        sha256_block(state, end + at);
    for (int i = 0; i < 8; i++)
        sprintf(hex + 8 * i, "%08x", state[i]);
}

/* --- verification --- */

typedef struct {
    uint64_t offset, row;
} place_of_frame;

typedef struct {
    shardtool_dataset *dataset;
    shard *shard;
    uint64_t findings, good;
    int in_shard, in_index; /* findings in the file */
    int length;             /* ShardLength was found */
    int counts;             /* a finding explains another number of frames */
    place_of_frame *places; /* of all frames by the index, sorted; NULL before they are needed */
    void (*report)(void *user, const shardtool_error *finding);
    void *user;
} verification;

static void found(verification *v, const shardtool_error *error)
{
    static const char *const explaining[] = {"ShardLength", "LengthCrc", "TruncatedFrame", "CompressedRecords",
                                             "RecordCount"};
    v->findings++;
    if (strncmp(error->file, "_index/", 7) == 0)
        v->in_index = 1;
    else
        v->in_shard = 1;
    for (size_t i = 0; i < LENGTH(explaining); i++)
        if (strcmp(error->name, explaining[i]) == 0)
            v->counts = 1;
    v->report(v->user, error);
}

static void mismatch(verification *v, const shardtool_record *record, shardtool_bytes name)
{
    shardtool_error error;
    fail(&error, "IndexMismatch", record->shard->index_file, "%.*s is not the record's",
         (int)(name.size < 100 ? name.size : 100), (const char *)name.data);
    error.record = (int64_t)record->row;
    found(v, &error);
}

/* Returns 1 unless the column is good and holds another number. */
static int is_number(const shard *h, const column *c, uint64_t row, uint64_t expected)
{
    return c->state < 0 || number_at(&h->index, c, row) == expected;
}

/* Returns 1 if a column has the value of its feature. Floats are compared by their bits. */
static int is_feature_value(const shard *h, const column *c, uint64_t row, const shardtool_features *features)
{
    shardtool_bytes name = {c->name.data + 8, c->name.size - 8}, bytes;
    int64_t integer;
    float real;
    uint32_t bits;
    if (c->element == OF_BYTES) {
        if (!shardtool_one(features, name, SHARDTOOL_BYTES, &bytes))
            return !is_valid(&h->index, c, row);
        return is_valid(&h->index, c, row) && equal(bytes_at(&h->index, c, row), bytes);
    }
    if (c->element == OF_F32) {
        if (!shardtool_one(features, name, SHARDTOOL_FLOAT, &real))
            return !is_valid(&h->index, c, row);
        memcpy(&bits, &real, 4);
        return is_valid(&h->index, c, row) && number_at(&h->index, c, row) == bits;
    }
    if (!shardtool_one(features, name, SHARDTOOL_INT64, &integer))
        return !is_valid(&h->index, c, row);
    return is_valid(&h->index, c, row) && as_i64(number_at(&h->index, c, row)) == integer;
}

/* Returns 1 if a row of value ranges has those of its feature, -1 if out of memory. */
static int are_ranges(const shard *h, const column *c, const shardtool_record *record,
                      const shardtool_features *features)
{
    shardtool_bytes name = {c->name.data + 7, c->name.size - 7}, row = bytes_at(&h->index, c, record->row);
    const shardtool_feature *feature = shardtool_find(features, name);
    uint64_t count = feature && feature->kind == SHARDTOOL_BYTES ? feature->count : 0;
    if (row.size / 12 != count)
        return 0;
    shardtool_bytes *values = calloc(count + 1, sizeof *values);
    int good = values ? 1 : -1;
    if (values && count)
        shardtool_values(feature, values);
    for (uint64_t i = 0; good == 1 && i < count; i++) {
        const uint8_t *p = row.data + 12 * i;
        good = u32(p) == (uint64_t)(values[i].data - record->data.data) && u32(p + 4) == values[i].size &&
               u32(p + 8) == shardtool_crc32c(record->dataset, values[i]);
    }
    free(values);
    return good;
}

/* Compares a record with its row of the index. */
static int compare_row(verification *v, const shardtool_record *record, const shardtool_features *features)
{
    shard *h = v->shard;
    shard_index *index = &h->index;
    shardtool_bytes image = {record->data.data, 0};
    if (!is_number(h, index->record_offset, record->row, record->offset))
        mismatch(v, record, text("record_offset"));
    shardtool_own_image(features, &image);
    if (!is_number(h, index->image_offset, record->row, (uint64_t)(image.data - record->data.data)) ||
        !is_number(h, index->image_length, record->row, image.size))
        mismatch(v, record, text("the image's range"));
    char *number = malloc(strlen(h->file) + 24);
    if (!number)
        return -1;
    if (index->key->state > 0 && !equal(bytes_at(index, index->key, record->row), shardtool_own_key(features, number)))
        mismatch(v, record, text("key"));
    free(number);
    for (size_t i = 0; i < index->count; i++) {
        column *c = &index->columns[i];
        int good = 1;
        if (c->state < 0)
            continue;
        if (starts_with(c->name, "feature:"))
            good = is_feature_value(h, c, record->row, features);
        if (starts_with(c->name, "values:"))
            good = are_ranges(h, c, record, features);
        if (good < 0)
            return -1;
        if (!good)
            mismatch(v, record, c->name);
    }
    return 0;
}

static void found_by_decoding(verification *v, const shardtool_error *error)
{
    if (strcmp(error->name, "NotDecoded") != 0)
        found(v, error);
}

/* Checks a record, and compares it with its row. */
static void verify_record(verification *v, const frame *f, uint64_t row)
{
    shard *h = v->shard;
    shardtool_record record = {v->dataset, h, h->first + row, row, f->offset, f->data};
    shardtool_features features;
    shardtool_raw_pixels pixels;
    shardtool_error error;
    uint64_t before = v->findings;
    int has_row = row < h->records;
    if (check_data(v->dataset, h, f, row, &error)) {
        found(v, &error);
        return;
    }
    if (shardtool_parse(&record, &features, &error)) {
        found(v, &error);
        shardtool_free_features(&features);
        return;
    }
    if (has_row && h->index.state > 0 && compare_row(v, &record, &features)) {
        out_of_memory(&error);
        found(v, &error);
    }
    if (shardtool_pixels(&features, &pixels, &error) < 0)
        found_by_decoding(v, &error);
    for (size_t i = 0; i < features.count; i++) {
        shardtool_bytes name;
        shardtool_array array;
        if (!shardtool_is_array(&features, i, &name))
            continue;
        if (shardtool_get_array(&features, name, &array, &error)) {
            found_by_decoding(v, &error);
            continue;
        }
        free(array.shape);
        free(array.data);
    }
    shardtool_free_features(&features);
    if (has_row && h->index.state > 0 && h->index.record_offset->state > 0 && v->findings == before)
        v->good++;
}

static int compare_places(const void *left, const void *right)
{
    const place_of_frame *a = left, *b = right;
    if (a->offset != b->offset)
        return a->offset < b->offset ? -1 : 1;
    return (a->row > b->row) - (a->row < b->row);
}

/* Finds the next frame by the index: the smallest offset larger than `at`. Returns 0 without one. */
static int next_place(verification *v, uint64_t at, place_of_frame *next)
{
    const shard *h = v->shard;
    if (h->index.state <= 0 || h->index.record_offset->state < 0 || h->records == 0)
        return 0;
    if (!v->places) {
        v->places = calloc(h->records, sizeof *v->places);
        if (!v->places)
            return 0;
        for (uint64_t row = 0; row < h->records; row++) {
            v->places[row].offset = number_at(&h->index, h->index.record_offset, row);
            v->places[row].row = row;
        }
        qsort(v->places, h->records, sizeof *v->places, compare_places);
    }
    uint64_t low = 0, high = h->records;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (v->places[middle].offset <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == h->records)
        return 0;
    *next = v->places[low];
    return 1;
}

/* Reads the shard from its first frame to its last. Bytes past the manifest's length are ignored. */
static void read_frames(verification *v)
{
    shard *h = v->shard;
    shardtool_error error;
    uint64_t at = 0, row = 0, end = h->data.size < h->bytes ? h->data.size : h->bytes;
    while (at < end) {
        frame f;
        if (take_frame(v->dataset, h, at, row, &f, &error) == 0) {
            verify_record(v, &f, row);
            at = f.end;
            row++;
            continue;
        }
        place_of_frame next;
        int is_last = !next_place(v, at, &next) || next.offset >= end;
        /* A wrong length of the file explains that its last frame is truncated. */
        if (!(v->length && is_last && strcmp(error.name, "TruncatedFrame") == 0))
            found(v, &error);
        if (is_last || strcmp(error.name, "CompressedRecords") == 0)
            break;
        at = next.offset;
        row = next.row;
    }
    if (row != h->records && !v->counts) {
        fail(&error, "RecordCount", h->file, "expected %llu records, found %llu", (unsigned long long)h->records,
             (unsigned long long)row);
        found(v, &error);
    }
}

/* Compares CRC and SHA-256 of the shard with the manifest, if nothing else explains that they differ. */
static void verify_shard_file(verification *v)
{
    const shard *h = v->shard;
    shardtool_error error;
    char digest[65];
    if (v->in_shard)
        return;
    uint32_t crc = crc32c(v->dataset, 0, h->data.data, h->data.size);
    if (crc != h->crc) {
        fail(&error, "ShardCrc", h->file, "expected %08x, found %08x", h->crc, crc);
        found(v, &error);
        return;
    }
    if (!h->sha256)
        return;
    sha256_hex(h->data.data, h->data.size, digest);
    if (strcmp(digest, h->sha256) != 0) {
        fail(&error, "ShardSha256", h->file, "expected %s, found %s", h->sha256, digest);
        found(v, &error);
    }
}

/* Compares length and CRC of the index with the manifest, if nothing else explains that they differ. */
static void verify_index_file(verification *v)
{
    const shard *h = v->shard;
    const file_map *map = &h->index.map;
    shardtool_error error;
    if (v->in_index)
        return;
    if (map->size != h->index_bytes || crc32c(v->dataset, 0, map->data, map->size) != h->index_crc) {
        fail(&error, "IndexCrc", h->index_file, "length or CRC is not the manifest's");
        found(v, &error);
    }
}

static void verify_shard(verification *v)
{
    shard *h = v->shard;
    shardtool_error error;
    v->in_shard = v->in_index = v->length = v->counts = 0;
    v->places = NULL;
    if (map_file(v->dataset->folder, h->file, "MissingShard", &h->data, &error)) {
        found(v, &error);
    } else if (h->data.size != h->bytes) {
        shard_length(h, &error);
        found(v, &error);
        v->length = 1;
    }
    if (open_index(v->dataset, h, &error))
        found(v, &error);
    for (size_t k = 0; k < h->index.count; k++)
        if (check_column(v->dataset, h, &h->index.columns[k], &error))
            found(v, &error);
    if (h->data.open) {
        read_frames(v);
        verify_shard_file(v);
    }
    verify_index_file(v);
    free(v->places);
    close_shard(h);
}

uint64_t shardtool_verify(const char *folder, void (*report)(void *, const shardtool_error *), void *user,
                          uint64_t *good)
{
    verification v;
    shardtool_error error;
    memset(&v, 0, sizeof v);
    v.report = report;
    v.user = user;
    if (shardtool_open(folder, &v.dataset, &error)) {
        found(&v, &error);
    } else {
        for (size_t i = 0; i < v.dataset->split_count; i++)
            for (size_t k = 0; k < v.dataset->splits[i].count; k++) {
                v.shard = &v.dataset->splits[i].shards[k];
                verify_shard(&v);
            }
        shardtool_close(v.dataset);
    }
    if (good)
        *good = v.good;
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
    if (n == 0)
        return 0;
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

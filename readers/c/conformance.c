/* Runs the C reader as the conformance kit asks: `conformance TASK PATH` prints JSON lines.
 *
 *     read DATASET      contents of splits, records and columns
 *     verify DATASET    findings, and the number of records without one
 *     order FILE        results of the vectors in a file
 *     all               reads lines `TASK PATH` from standard input, and ends each answer with {"end": exit status}
 *
 * The exit status of another task is 3. `fixtures/conformance/README.md` describes the lines. */
#include "shardtool_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DONE = 0, FAILED = 1, NOT_IMPLEMENTED = 3 };

/* --- JSON --- */

static void print_text(const uint8_t *data, size_t size)
{
    putchar('"');
    for (size_t i = 0; i < size; i++)
        if (data[i] == '"' || data[i] == '\\')
            printf("\\%c", data[i]);
        else if (data[i] < 0x20)
            printf("\\u%04x", data[i]);
        else
            putchar(data[i]);
    putchar('"');
}

static void print_string(const char *string) { print_text((const uint8_t *)string, strlen(string)); }

static void print_digest(const shardtool_dataset *dataset, shardtool_bytes bytes)
{
    printf("\"%08" PRIx32 ":%zu\"", shardtool_crc32c(dataset, bytes), bytes.size);
}

/* Prints what an error is called; an error of another kind ends the program. */
static void print_error(const shardtool_error *error)
{
    const char *name = strcmp(error->name, "NotDecoded") == 0 ? "unsupported" : error->name;
    if (strcmp(name, "Io") == 0 || strcmp(name, "Memory") == 0 || strcmp(name, "Argument") == 0) {
        fprintf(stderr, "%s: %s: %s\n", name, error->file, error->text);
        exit(FAILED);
    }
    printf("\"error\": \"%s\"", name);
}

static void *allocate(size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory)
        exit(FAILED);
    return memory;
}

/* --- read --- */

static void print_feature(const shardtool_dataset *dataset, const shardtool_feature *feature)
{
    static const char *const names[] = {"", "bytes", "float", "int64"};
    void *values = allocate(feature->count, sizeof(shardtool_bytes));
    shardtool_values(feature, values);
    print_text(feature->name.data, feature->name.size);
    printf(": {\"type\": \"%s\", \"values\": [", names[feature->kind]);
    for (uint64_t i = 0; i < feature->count; i++) {
        printf("%s", i ? ", " : "");
        if (feature->kind == SHARDTOOL_BYTES) {
            print_digest(dataset, ((shardtool_bytes *)values)[i]);
        } else if (feature->kind == SHARDTOOL_FLOAT) {
            uint32_t bits;
            memcpy(&bits, (float *)values + i, 4);
            printf("\"%08" PRIx32 "\"", bits);
        } else {
            printf("\"%" PRId64 "\"", ((int64_t *)values)[i]);
        }
    }
    printf("]}");
    free(values);
}

static void print_features(const shardtool_dataset *dataset, const shardtool_features *features)
{
    printf(", \"features\": {");
    for (size_t i = 0; i < features->count; i++) {
        printf("%s", i ? ", " : "");
        print_feature(dataset, &features->list[i]);
    }
    printf("}");
}

/* Prints the numbers of features of logical types: the bits of floats, as 16 hex digits; integers in decimal. */
static void print_numbers(const shardtool_dataset *dataset, const shardtool_features *features)
{
    int count = 0;
    for (size_t i = 0; i < features->count; i++) {
        const shardtool_feature *feature = &features->list[i];
        int type = shardtool_logical(dataset, feature->name);
        if (!type)
            continue;
        printf("%s", count++ ? ", " : ", \"numbers\": {");
        print_text(feature->name.data, feature->name.size);
        printf(": {\"type\": \"%s\", \"values\": ", type == SHARDTOOL_FLOAT64 ? "float64" : "uint64");
        uint64_t *words = allocate(feature->count, sizeof *words);
        if (shardtool_numbers(feature, words)) {
            printf("[");
            for (uint64_t k = 0; k < feature->count; k++) {
                printf("%s\"", k ? ", " : "");
                type == SHARDTOOL_FLOAT64 ? printf("%016" PRIx64, words[k]) : printf("%" PRIu64, words[k]);
                printf("\"");
            }
            printf("]}");
        } else {
            printf("null}");
        }
        free(words);
    }
    printf("%s", count ? "}" : "");
}

static int is_raw(const shardtool_features *features)
{
    static const char name[] = "image/format", raw[] = "raw", compressed[] = "raw-zstd";
    shardtool_bytes format, feature = {(const uint8_t *)name, sizeof name - 1};
    if (!shardtool_one(features, feature, SHARDTOOL_BYTES, &format))
        return 0;
    return (format.size == sizeof raw - 1 && memcmp(format.data, raw, format.size) == 0) ||
           (format.size == sizeof compressed - 1 && memcmp(format.data, compressed, format.size) == 0);
}

static void print_pixels(const shardtool_dataset *dataset, const shardtool_features *features)
{
    shardtool_raw_pixels pixels;
    shardtool_error error;
    printf(", \"pixels\": ");
    if (shardtool_pixels(features, &pixels, &error) > 0) {
        print_digest(dataset, pixels.rgb);
        return;
    }
    printf("{");
    print_error(&error);
    printf("}");
}

static void print_arrays(const shardtool_dataset *dataset, const shardtool_features *features)
{
    int count = 0;
    for (size_t i = 0; i < features->count; i++) {
        shardtool_bytes name, data;
        shardtool_array array;
        shardtool_error error;
        if (!shardtool_is_array(features, i, &name))
            continue;
        printf("%s", count++ ? ", " : ", \"arrays\": {");
        print_text(name.data, name.size);
        printf(": {");
        if (shardtool_get_array(features, name, &array, &error)) {
            print_error(&error);
        } else {
            printf("\"shape\": [");
            for (uint64_t d = 0; d < array.dimensions; d++)
                printf("%s\"%" PRId64 "\"", d ? ", " : "", array.shape[d]);
            printf("], \"dtype\": ");
            print_text(array.dtype.data, array.dtype.size);
            printf(", \"data\": ");
            data.data = array.data;
            data.size = array.size;
            print_digest(dataset, data);
            free(array.shape);
            free(array.data);
        }
        printf("}");
    }
    printf("%s", count ? "}" : "");
}

static void print_record(shardtool_dataset *dataset, size_t split, uint64_t id)
{
    shardtool_record record;
    shardtool_features features;
    shardtool_error error;
    shardtool_bytes image;
    int64_t class_id;
    printf("{\"split\": \"%s\", \"record\": %" PRIu64 ", ", shardtool_split_name(dataset, split), id);
    if (shardtool_read(dataset, split, id, 0, &record, &error)) {
        print_error(&error);
        printf("}\n");
        return;
    }
    if (shardtool_parse(&record, &features, &error)) {
        print_error(&error);
        printf("}\n");
        shardtool_free_features(&features);
        return;
    }
    char *number = allocate(strlen(shardtool_file(&record)) + 24, 1);
    printf("\"key\": ");
    print_digest(dataset, shardtool_own_key(&features, number));
    free(number);
    printf(", \"data\": ");
    print_digest(dataset, record.data);
    printf(", \"image\": ");
    int has_image = shardtool_own_image(&features, &image);
    has_image ? print_digest(dataset, image) : (void)printf("null");
    printf(", \"class\": ");
    shardtool_class_id(&features, &class_id) ? printf("\"%" PRId64 "\"", class_id) : printf("null");
    if (!shardtool_is_opaque(dataset))
        print_features(dataset, &features);
    print_numbers(dataset, &features);
    if (has_image && is_raw(&features))
        print_pixels(dataset, &features);
    print_arrays(dataset, &features);
    printf("}\n");
    shardtool_free_features(&features);
}

static int begins_with(shardtool_bytes name, const char *prefix)
{
    return name.size >= strlen(prefix) && memcmp(name.data, prefix, strlen(prefix)) == 0;
}

static uint32_t u32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void print_cell(const shardtool_dataset *dataset, const shardtool_cell_value *value, int ranges)
{
    if (ranges) {
        printf("[");
        for (size_t at = 0; at < value->bytes.size; at += 12) {
            const uint8_t *p = value->bytes.data + at;
            printf("%s[\"%" PRIu32 "\", \"%" PRIu32 "\", \"%08" PRIx32 "\"]", at ? ", " : "", u32(p), u32(p + 4),
                   u32(p + 8));
        }
        printf("]");
    } else if (value->is_null) {
        printf("null");
    } else if (value->kind == SHARDTOOL_BYTES) {
        print_digest(dataset, value->bytes);
    } else if (value->kind == SHARDTOOL_FLOAT) {
        printf("\"%08" PRIx32 "\"", value->bits);
    } else {
        printf("\"%" PRId64 "\"", value->integer);
    }
}

/* Prints the columns of features and value ranges in one shard. */
static void print_columns(shardtool_dataset *dataset, size_t split, size_t number)
{
    shardtool_shard *index;
    shardtool_error error;
    if (shardtool_index(dataset, split, number, &index, &error))
        return;
    for (size_t i = 0; i < shardtool_column_count(index); i++) {
        shardtool_bytes name = shardtool_column_name(index, i);
        int ranges = begins_with(name, "values:");
        if (!ranges && !begins_with(name, "feature:"))
            continue;
        printf("{\"split\": \"%s\", \"shard\": %zu, \"column\": ", shardtool_split_name(dataset, split), number);
        print_text(name.data, name.size);
        printf(", ");
        if (shardtool_check_column(dataset, index, i, &error)) {
            print_error(&error);
        } else {
            printf("\"values\": [");
            for (uint64_t row = 0; row < shardtool_rows(index); row++) {
                shardtool_cell_value value;
                shardtool_cell(dataset, index, i, row, &value, &error);
                printf("%s", row ? ", " : "");
                print_cell(dataset, &value, ranges);
            }
            printf("]");
        }
        printf("}\n");
    }
}

typedef struct {
    shardtool_bytes key;
    uint64_t id;
} key_of_record;

static int compare_keys(const void *left, const void *right)
{
    const key_of_record *a = left, *b = right;
    size_t size = a->key.size < b->key.size ? a->key.size : b->key.size;
    int order = size ? memcmp(a->key.data, b->key.data, size) : 0;
    if (order || a->key.size != b->key.size)
        return order ? order : a->key.size < b->key.size ? -1 : 1;
    return (a->id > b->id) - (a->id < b->id);
}

/* Adds the keys of a shard. Those of a damaged index or column are left out. */
static size_t add_keys(shardtool_dataset *dataset, size_t split, size_t number, key_of_record **keys, size_t count)
{
    shardtool_shard *index;
    shardtool_error error;
    size_t column = 0;
    if (shardtool_index(dataset, split, number, &index, &error))
        return count;
    while (column < shardtool_column_count(index)) {
        shardtool_bytes name = shardtool_column_name(index, column);
        if (name.size == 3 && begins_with(name, "key"))
            break;
        column++;
    }
    if (shardtool_check_column(dataset, index, column, &error))
        return count;
    uint64_t rows = shardtool_rows(index);
    key_of_record *more = realloc(*keys, (count + rows + 1) * sizeof *more);
    if (!more)
        exit(FAILED);
    *keys = more;
    for (uint64_t row = 0; row < rows; row++) {
        shardtool_cell_value value;
        shardtool_cell(dataset, index, column, row, &value, &error);
        more[count].key = value.bytes;
        more[count++].id = shardtool_first_record(index) + row;
    }
    return count;
}

static void print_lookups(shardtool_dataset *dataset, size_t split)
{
    key_of_record *keys = NULL;
    size_t count = 0;
    for (size_t k = 0; k < shardtool_shard_count(dataset, split); k++)
        count = add_keys(dataset, split, k, &keys, count);
    if (count)
        qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 0; i < count; i++) {
        if (i && keys[i].key.size == keys[i - 1].key.size &&
            (!keys[i].key.size || memcmp(keys[i].key.data, keys[i - 1].key.data, keys[i].key.size) == 0))
            continue;
        printf("{\"split\": \"%s\", \"lookup\": \"", shardtool_split_name(dataset, split));
        for (size_t k = 0; k < keys[i].key.size; k++)
            printf("%02x", keys[i].key.data[k]);
        printf("\", \"record\": %" PRIu64 "}\n", keys[i].id);
    }
    free(keys);
}

static int read_dataset(const char *folder)
{
    shardtool_dataset *dataset;
    shardtool_error error;
    if (shardtool_open(folder, &dataset, &error)) {
        if (strncmp(error.name, "Manifest", 8) != 0) {
            fprintf(stderr, "%s: %s\n", error.name, error.text);
            return FAILED;
        }
        printf("{\"refused\": \"%s\"}\n", error.name);
        return DONE;
    }
    for (size_t s = 0; s < shardtool_split_count(dataset); s++)
        printf("{\"split\": \"%s\", \"records\": %" PRIu64 ", \"fingerprint\": \"%08" PRIx32 "\"}\n",
               shardtool_split_name(dataset, s), shardtool_split_records(dataset, s), shardtool_fingerprint(dataset, s));
    for (size_t s = 0; s < shardtool_split_count(dataset); s++) {
        for (uint64_t i = 0; i < shardtool_split_records(dataset, s); i++)
            print_record(dataset, s, i);
        for (size_t k = 0; k < shardtool_shard_count(dataset, s); k++)
            print_columns(dataset, s, k);
        print_lookups(dataset, s);
    }
    shardtool_close(dataset);
    return DONE;
}

/* --- verify --- */

static void print_number(const char *name, int64_t number)
{
    printf(", \"%s\": ", name);
    number < 0 ? printf("null") : printf("%" PRId64, number);
}

static void print_finding(void *failed, const shardtool_error *finding)
{
    if (strcmp(finding->name, "Io") == 0 || strcmp(finding->name, "Memory") == 0) {
        fprintf(stderr, "%s: %s: %s\n", finding->name, finding->file, finding->text);
        *(int *)failed = 1;
        return;
    }
    printf("{\"finding\": \"%s\", \"file\": ", finding->name);
    print_string(finding->file);
    print_number("record", finding->record);
    print_number("offset", finding->offset);
    printf("}\n");
}

static int verify_dataset(const char *folder)
{
    uint64_t good;
    int failed = 0;
    shardtool_verify(folder, print_finding, &failed, &good);
    printf("{\"good\": %" PRIu64 "}\n", good);
    return failed ? FAILED : DONE;
}

/* --- order --- */

static char *read_line(FILE *file)
{
    size_t size = 0, capacity = 1 << 16;
    char *line = allocate(capacity, 1);
    int c;
    while ((c = getc(file)) != EOF && c != '\n') {
        if (size + 2 > capacity && !(line = realloc(line, capacity *= 2)))
            exit(FAILED);
        line[size++] = (char)c;
    }
    line[size] = 0;
    if (c != EOF || size)
        return line;
    free(line);
    return NULL;
}

/* Finds the value of a member in a vector, which is one line of JSON whose strings have no escapes. */
static const char *member(const char *line, const char *name)
{
    size_t size = strlen(name);
    for (const char *at = line; (at = strchr(at, '"')) != NULL; at++)
        if (strncmp(at + 1, name, size) == 0 && at[size + 1] == '"' && at[size + 2] == ':') {
            at += size + 3;
            return at + strspn(at, " ");
        }
    return NULL;
}

static uint64_t number_of(const char *line, const char *name)
{
    const char *value = member(line, name);
    return value ? strtoull(value, NULL, 10) : 0;
}

/* Steps through the numbers of an array: returns 0 at its end. */
static int next_number(const char **at, uint64_t *number)
{
    char *end;
    while (**at == '[' || **at == ',' || **at == ' ')
        ++*at;
    if (**at < '0' || **at > '9')
        return 0;
    *number = strtoull(*at, &end, 10);
    *at = end;
    return 1;
}

static void print_draws(const char *name, const char *format, const uint64_t *values)
{
    printf(", \"%s\": [", name);
    for (int i = 0; i < 4; i++) {
        printf("%s", i ? ", " : "");
        printf(format, values[i]);
    }
    printf("]");
}

static void answer_key(const char *line)
{
    char domain[9] = "";
    const char *value = member(line, "domain"), *bounds = member(line, "bounds");
    uint64_t words[4], floats[4], below[4], bound;
    sscanf(value, "\"%8[^\"]", domain);
    uint64_t key = shardtool_derive_key(domain, number_of(line, "seed"), number_of(line, "epoch"),
                                        number_of(line, "tweak"));
    for (uint64_t i = 0; i < 4; i++) {
        words[i] = shardtool_draw(key, i);
        floats[i] = words[i] >> 11;
        below[i] = shardtool_scale(words[i], 1000);
    }
    printf("{\"key\": \"%016" PRIx64 "\"", key);
    print_draws("words", "\"%016" PRIx64 "\"", words);
    print_draws("floats_times_2_53", "%" PRIu64, floats);
    print_draws("below_1000", "%" PRIu64, below);
    if (bounds) {
        printf(", \"below\": [");
        for (uint64_t i = 0; next_number(&bounds, &bound); i++)
            printf("%s%" PRIu64, i ? ", " : "", shardtool_scale(shardtool_draw(key, i), bound));
        printf("]");
    }
    printf("}\n");
}

static void answer_permutation(const char *line)
{
    static shardtool_permutation permutation;
    const char *at = member(line, "x"), *key = member(line, "key");
    uint64_t x;
    if (shardtool_permutation_init(&permutation, number_of(line, "len"), strtoull(key + 1, NULL, 16))) {
        printf("{\"refused\": \"TooManySamples\"}\n");
        return;
    }
    printf("{\"y\": [");
    for (int first = 1; at && next_number(&at, &x); first = 0)
        printf("%s%" PRIu64, first ? "" : ", ", shardtool_permute(&permutation, x));
    printf("]}\n");
}

static void answer_order(const char *line)
{
    static shardtool_order order;
    static const char *const kinds[] = {"\"sequential\"", "\"shuffled\"", "\"interleaved\""};
    const char *kind = member(line, "order"), *at = member(line, "position");
    int number = 0;
    uint64_t q;
    while (number < 2 && strncmp(kind, kinds[number], strlen(kinds[number])) != 0)
        number++;
    if (shardtool_order_init(&order, number, number_of(line, "len"), number_of(line, "seed"), number_of(line, "epoch"),
                             number_of(line, "run"), number_of(line, "window"))) {
        printf("{\"refused\": \"TooManySamples\"}\n");
        return;
    }
    printf("{\"place\": [");
    for (int first = 1; at && next_number(&at, &q); first = 0)
        printf("%s%" PRIu64, first ? "" : ", ", shardtool_order_place(&order, q));
    printf("]}\n");
}

/* Sources, steps and states belong to loaders. */
static int answer_vectors(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        perror(path);
        return FAILED;
    }
    for (char *line; (line = read_line(file)) != NULL; free(line)) {
        if (member(line, "domain"))
            answer_key(line);
        else if (member(line, "key"))
            answer_permutation(line);
        else if (member(line, "order") && member(line, "len"))
            answer_order(line);
        else
            printf("{\"unsupported\": true}\n");
    }
    fclose(file);
    return DONE;
}

/* --- tasks --- */

static int run(const char *task, const char *path)
{
    if (strcmp(task, "read") == 0)
        return read_dataset(path);
    if (strcmp(task, "verify") == 0)
        return verify_dataset(path);
    if (strcmp(task, "order") == 0)
        return answer_vectors(path);
    return NOT_IMPLEMENTED;
}

int main(int count, char **arguments)
{
    if (count == 3)
        return run(arguments[1], arguments[2]);
    if (count != 2 || strcmp(arguments[1], "all") != 0)
        return NOT_IMPLEMENTED;
    for (char *line; (line = read_line(stdin)) != NULL; free(line)) {
        char *space = strchr(line, ' ');
        if (!space)
            return FAILED;
        *space = 0;
        printf("{\"end\": %d}\n", run(line, space + 1));
        fflush(stdout);
    }
    return DONE;
}

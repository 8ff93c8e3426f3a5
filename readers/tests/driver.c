/* Runs the C reader on the same commands, and with the same output, as driver.py runs the Python reader. */
#include "../c/shardtool_reader.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_escaped(shardtool_bytes bytes)
{
    for (size_t i = 0; i < bytes.size; i++)
        if (bytes.data[i] > 0x20 && bytes.data[i] < 0x7f && bytes.data[i] != '\\')
            putchar(bytes.data[i]);
        else
            printf("\\x%02x", bytes.data[i]);
}

static void print_error(const shardtool_error *error)
{
    printf("%s %s %" PRId64 "\n", error->name, error->file, error->record);
}

/* As Python's float.hex. */
static void print_float(float value)
{
    char digits[64], *point, *exponent;
    if (value != value) {
        printf("nan");
        return;
    }
    if (value - value != 0) {
        printf(value > 0 ? "inf" : "-inf");
        return;
    }
    if (value == 0) {
        printf(1 / value > 0 ? "0x0.0p+0" : "-0x0.0p+0");
        return;
    }
    snprintf(digits, sizeof digits, "%.13a", (double)value);
    point = strchr(digits, '.');
    exponent = strchr(digits, 'p');
    printf("%.*s%s", (int)(exponent - digits), point ? digits : "", exponent);
}

static int print_record(const shardtool_record *record, const char *split, shardtool_error *error)
{
    shardtool_bytes key, image, name;
    shardtool_number number;
    shardtool_raw_pixels pixels;
    int64_t class_id = 0;
    int has_image = shardtool_image(record, &image, error);
    if (has_image < 0)
        return -1;
    int has_class = shardtool_class_id(record, &class_id, error);
    if (has_class < 0 || shardtool_key(record, &key, error))
        return -1;
    int more = 1;
    for (size_t i = 0; more > 0; i++) /* finds an error before anything is printed */
        more = shardtool_column(record, i, &name, &number, error);
    if (more < 0)
        return -1;
    int has_pixels = shardtool_pixels(record, &pixels, error);
    if (has_pixels < 0 && strcmp(error->name, "NotDecoded") != 0)
        return -1;

    printf("%s %" PRIu64 " ", split, record->id);
    print_escaped(key);
    has_class ? printf(" %" PRId64, class_id) : printf(" -");
    has_image ? printf(" %zu %08" PRIx32, image.size, shardtool_crc32c(record->dataset, image)) : printf(" - -");
    for (size_t i = 0; shardtool_column(record, i, &name, &number, error) > 0; i++) {
        putchar(' ');
        print_escaped(name);
        putchar('=');
        if (number.is_float)
            print_float(number.real);
        else
            printf("%" PRId64, number.integer);
    }
    if (has_pixels < 0)
        printf(" not-decoded\n");
    else if (has_pixels)
        printf(" %" PRIu64 "x%" PRIu64 "\n", pixels.height, pixels.width);
    else
        printf(" no-pixels\n");
    return 0;
}

static void print_finding(void *user, const shardtool_error *finding)
{
    (void)user;
    printf("  ");
    print_error(finding);
}

static void examine(const char *folder)
{
    shardtool_dataset *dataset;
    shardtool_error error;
    shardtool_verify(folder, print_finding, NULL);
    if (shardtool_open(folder, &dataset, &error)) {
        print_error(&error);
        return;
    }
    for (size_t s = 0; s < shardtool_split_count(dataset); s++) {
        const char *name = shardtool_split_name(dataset, s);
        uint64_t records = shardtool_split_records(dataset, s);
        printf("%s: %" PRIu64 " records, fingerprint %08" PRIx32 "\n", name, records,
               shardtool_fingerprint(dataset, s));
        for (uint64_t i = 0; i < records; i++) {
            shardtool_record record;
            if (shardtool_read(dataset, s, i, 0, &record, &error) || print_record(&record, name, &error)) {
                printf("%s %" PRIu64 " ", name, i);
                print_error(&error);
            }
        }
    }
    shardtool_close(dataset);
}

static char *read_line(void)
{
    size_t size = 0, capacity = 1 << 16;
    char *line = malloc(capacity);
    int c;
    while (line && (c = getchar()) != EOF && c != '\n') {
        if (size + 2 > capacity)
            line = realloc(line, capacity *= 2);
        if (line)
            line[size++] = (char)c;
    }
    if (!line || (c == EOF && size == 0)) {
        free(line);
        return NULL;
    }
    line[size] = 0;
    return line;
}

static void patched(const char *folder)
{
    char *line, path[4096];
    while ((line = read_line()) != NULL) {
        unsigned char sound[16];
        long offsets[16];
        int changes = 0, value;
        printf("> %s\n", line);
        snprintf(path, sizeof path, "%s/%s", folder, strtok(line, " "));
        FILE *file = fopen(path, "r+b");
        for (char *word; file && (word = strtok(NULL, " ")) && changes < 16; changes++) {
            sscanf(word, "%ld:%d", &offsets[changes], &value);
            fseek(file, offsets[changes], SEEK_SET);
            sound[changes] = (unsigned char)getc(file);
            fseek(file, offsets[changes], SEEK_SET);
            putc(value, file);
        }
        if (!file || fflush(file))
            exit(2);
        examine(folder);
        while (changes-- > 0) {
            fseek(file, offsets[changes], SEEK_SET);
            putc(sound[changes], file);
        }
        fclose(file);
        free(line);
    }
}

static uint64_t next_word(int base)
{
    const char *word = strtok(NULL, " ");
    return strtoull(word ? word : "", NULL, base);
}

static void answer(char *question)
{
    static shardtool_order order;
    static shardtool_permutation permutation;
    const char *kind = strtok(question, " "), *word;
    if (strcmp(kind, "key") == 0 || strcmp(kind, "augment") == 0) {
        int full = strcmp(kind, "key") == 0;
        const char *domain = full ? strtok(NULL, " ") : kind;
        uint64_t seed = next_word(10), epoch = next_word(10), tweak = next_word(10);
        uint64_t key = shardtool_derive_key(domain, seed, epoch, tweak);
        if (full)
            printf("%016" PRIx64, key);
        for (uint64_t i = 0; i < 4; i++) {
            uint64_t draw = shardtool_draw(key, i);
            printf("%s%016" PRIx64, i || full ? " " : "", draw);
            if (full)
                printf(" %" PRIu64 " %" PRIu64, draw >> 11, shardtool_scale(draw, 1000));
        }
    } else if (strcmp(kind, "below") == 0) {
        uint64_t key = next_word(16);
        for (uint64_t i = 0; (word = strtok(NULL, " ")) != NULL; i++)
            printf("%s%" PRIu64, i ? " " : "", shardtool_scale(shardtool_draw(key, i), strtoull(word, NULL, 10)));
    } else if (strcmp(kind, "permutation") == 0 || strcmp(kind, "pack") == 0) {
        uint64_t n = next_word(10);
        uint64_t key = strcmp(kind, "pack") == 0 ? shardtool_derive_key("pack", next_word(10), 0, 0) : next_word(16);
        if (shardtool_permutation_init(&permutation, n, key)) {
            puts("refused");
            return;
        }
        for (int first = 1; (word = strtok(NULL, " ")) != NULL; first = 0)
            printf("%s%" PRIu64, first ? "" : " ", shardtool_permute(&permutation, strtoull(word, NULL, 10)));
    } else {
        uint64_t n = next_word(10), seed = next_word(10), epoch = next_word(10), run = next_word(10);
        int number = strcmp(kind, "sequential") == 0 ? SHARDTOOL_SEQUENTIAL
                     : strcmp(kind, "shuffled") == 0 ? SHARDTOOL_SHUFFLED
                                                     : SHARDTOOL_INTERLEAVED;
        if (shardtool_order_init(&order, number, n, seed, epoch, run, next_word(10))) {
            puts("refused");
            return;
        }
        for (int first = 1; (word = strtok(NULL, " ")) != NULL; first = 0)
            printf("%s%" PRIu64, first ? "" : " ", shardtool_order_place(&order, strtoull(word, NULL, 10)));
    }
    putchar('\n');
}

int main(int count, char **arguments)
{
    if (count > 2 && strcmp(arguments[1], "examine") == 0) {
        for (int i = 2; i < count; i++) {
            printf("> %s\n", arguments[i]);
            examine(arguments[i]);
        }
    } else if (count == 3 && strcmp(arguments[1], "patched") == 0) {
        patched(arguments[2]);
    } else if (count == 2 && strcmp(arguments[1], "order") == 0) {
        for (char *line; (line = read_line()) != NULL; free(line))
            answer(line);
    } else {
        return 2;
    }
    return 0;
}

/* Reads shardtool datasets: C99 and POSIX (mmap), no dependencies, little- or big-endian, 64-bit sizes.
 *
 * Written from format-spec.md and order-spec.md alone, with their terms; a `place` is a source position.
 *
 *     shardtool_open      reads and checks the manifest, nothing else
 *     shardtool_read      record i of a split: its frame, both CRCs checked
 *     shardtool_key, _image, _column      from the index; each column is checked on first use
 *     shardtool_feature, _values, _class_id, _pixels      from the record itself
 *     shardtool_verify    all damage of a dataset
 *     shardtool_order_*   the order of samples in an epoch
 *
 * It decodes only raw pixels; images of other formats are returned as stored, for other libraries to decode.
 * Files are mapped: if one is truncated while it is read, the program ends with SIGBUS. A shard is
 * opened when one of its records is first read, so a dataset may be used by one thread at a time;
 * orders and permutations do not depend on a dataset.
 *
 * Functions that can fail return -1 and fill in the error; comments state other results.
 */
#ifndef SHARDTOOL_READER_H
#define SHARDTOOL_READER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const uint8_t *data;
    size_t size;
} shardtool_bytes;

/* `name` is the specification's, or one of
 *     Io          the operating system refused (no dataset.json, no permission, …)
 *     Memory      out of memory
 *     Argument    an invalid argument
 *     NotDecoded  the image is of a format that this reader does not decode */
typedef struct {
    const char *name;
    char file[272];  /* relative to the dataset's folder; truncated if longer */
    int64_t record;  /* number in the shard, or -1 */
    char text[200];  /* what was expected and found */
} shardtool_error;

/* --- datasets --- */

typedef struct shardtool_dataset shardtool_dataset;

int shardtool_open(const char *folder, shardtool_dataset **dataset, shardtool_error *error);
void shardtool_close(shardtool_dataset *dataset); /* NULL is fine */

size_t shardtool_split_count(const shardtool_dataset *dataset);
/* Returns the number of a split, or -1. */
int64_t shardtool_find_split(const shardtool_dataset *dataset, const char *name);
const char *shardtool_split_name(const shardtool_dataset *dataset, size_t split);
uint64_t shardtool_split_records(const shardtool_dataset *dataset, size_t split);
/* Changes if a record of the split or their order changes. */
uint32_t shardtool_fingerprint(const shardtool_dataset *dataset, size_t split);
size_t shardtool_class_count(const shardtool_dataset *dataset);
shardtool_bytes shardtool_class_name(const shardtool_dataset *dataset, size_t class_id);
uint32_t shardtool_crc32c(const shardtool_dataset *dataset, shardtool_bytes bytes);

/* --- records --- */

/* Valid until the dataset is closed, like all pointers taken from it. */
typedef struct {
    shardtool_dataset *dataset;
    struct shardtool_shard *shard;
    uint64_t id;  /* in the split */
    uint64_t row; /* in the shard */
    shardtool_bytes data;
} shardtool_record;

enum { SHARDTOOL_TRUST_DATA = 1 }; /* do not check the CRC of a record's data */

int shardtool_read(shardtool_dataset *dataset, size_t split, uint64_t id, int flags, shardtool_record *record,
                   shardtool_error *error);
int shardtool_key(const shardtool_record *record, shardtool_bytes *key, shardtool_error *error);
/* Returns 1, or 0 if the record has no image. */
int shardtool_image(const shardtool_record *record, shardtool_bytes *image, shardtool_error *error);

typedef struct {
    int is_float;
    int64_t integer;
    float real;
} shardtool_number;

/* Gets the i-th number of a record in the index. Returns 1, or 0 past the last. */
int shardtool_column(const shardtool_record *record, size_t i, shardtool_bytes *feature_name, shardtool_number *number,
                     shardtool_error *error);

enum { SHARDTOOL_MISSING = 0, SHARDTOOL_BYTES = 1, SHARDTOOL_FLOAT = 2, SHARDTOOL_INT64 = 3 };

typedef struct {
    int kind;
    uint64_t count;
    shardtool_bytes entry; /* its bytes in the record */
    uint64_t run;          /* the list to use, for shardtool_values */
} shardtool_feature_list;

/* Returns 1, or 0 if the record does not have the feature. */
int shardtool_feature(const shardtool_record *record, const char *name, shardtool_feature_list *feature,
                      shardtool_error *error);
/* Writes `count` values: shardtool_bytes, float or int64_t, by the feature's kind. */
void shardtool_values(const shardtool_feature_list *feature, void *values);
/* Stored label − label_offset. Returns 1, or 0 without a label. */
int shardtool_class_id(const shardtool_record *record, int64_t *class_id, shardtool_error *error);

typedef struct {
    uint64_t height, width;
    shardtool_bytes rgb; /* height × width × 3 bytes */
} shardtool_raw_pixels;

/* Returns 1, or 0 if the record has no image. If the image is not `raw`, the error is NotDecoded. */
int shardtool_pixels(const shardtool_record *record, shardtool_raw_pixels *pixels, shardtool_error *error);

/* --- verification --- */

/* Calls `report` with every finding and returns their number. Raw pixels are compared with height and
 * width; images of other formats are not decoded. */
uint64_t shardtool_verify(const char *folder, void (*report)(void *user, const shardtool_error *finding), void *user);

/* --- order --- */

uint64_t shardtool_derive_key(const char *domain, uint64_t seed, uint64_t epoch, uint64_t tweak);
/* Draw i of a key. `draw >> 11` times 2⁻⁵³ is a number in [0, 1). */
uint64_t shardtool_draw(uint64_t key, uint64_t i);
/* Scales a u64 to [0, n), for n up to 2³². */
uint64_t shardtool_scale(uint64_t word, uint64_t n);

typedef struct {
    uint64_t n, a, b, keys[6];
    uint16_t table[4096];
} shardtool_permutation;

/* Returns 0, or -1 unless n ≤ 2⁶³. For packing, the key is that of the domain "pack". */
int shardtool_permutation_init(shardtool_permutation *permutation, uint64_t n, uint64_t key);
/* x is below n. */
uint64_t shardtool_permute(const shardtool_permutation *permutation, uint64_t x);

enum { SHARDTOOL_SEQUENTIAL, SHARDTOOL_SHUFFLED, SHARDTOOL_INTERLEAVED };

typedef struct {
    int kind;
    uint64_t n, seed, epoch, run, window, inside_number;
    shardtool_permutation all, inside;
} shardtool_order;

/* Returns 0, or -1 unless n ≤ 2⁶³ and, for interleaved, run and window are in [1, 2³²). */
int shardtool_order_init(shardtool_order *order, int kind, uint64_t n, uint64_t seed, uint64_t epoch, uint64_t run,
                         uint64_t window);
/* Returns the source position at position q, below n; for a whole split, the record's number. */
uint64_t shardtool_order_place(shardtool_order *order, uint64_t q);

#endif

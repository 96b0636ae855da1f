/* Evaluate a cost model that `commsim export cost-model` wrote: one file without dependencies, to be copied.
 *
 *     struct cost_model model;
 *     double times[3];                                        time, low and high, in seconds
 *     if (cost_model_read(&model, text)) ...                  the content of the file, ended by a zero; 0: well read
 *     const struct cost_curve *curve = cost_model_curve(&model, "all_reduce", 4, 8, "");    NULL: not in the file
 *     if (cost_curve_answer(curve, 64 << 20, times)) ...      bytes as nccl-tests counts them; 0: within the file
 *
 * The versions in Python and JavaScript return the same bits; for that, compile with -ffp-contract=off.
 * C99. The file is trusted: it is one that commsim wrote. */
#include <stdlib.h>
#include <string.h>

enum { COST_SIZE, COST_TIME, COST_LOW, COST_HIGH, COST_COLUMNS };
struct cost_curve {
    char operation[64], faults[256];
    int machines, gpus, n;
    double *column[COST_COLUMNS]; /* size in bytes, and three times in seconds, of n nodes */
};
struct cost_model {
    int n;
    struct cost_curve *curves;
};

static const char *cost_space(const char *at) { return at + strspn(at, " \t\r\n,:"); }

/* Return what follows a value: a text, a list or a table with all that is in it, or a word. */
static const char *cost_skip(const char *at) {
    int depth = 0;
    for (;; at++) {
        at = cost_space(at);
        if (*at == '"') {
            for (at++; *at && *at != '"'; at++) at += *at == '\\' && at[1];
            if (!*at) return at;
        } else if (*at == '[' || *at == '{') {
            depth++;
        } else if (*at == ']' || *at == '}') {
            depth--;
        } else if (*at) {
            at += strcspn(at, " \t\r\n,:]}") - 1;
        } else {
            return at;
        }
        if (depth <= 0) return at + 1;
    }
}

/* Return the value of a key of a table; NULL where it has none. */
static const char *cost_value(const char *at, const char *key) {
    size_t length = strlen(key);
    for (at = cost_space(at + 1); *at && *at != '}'; at = cost_space(cost_skip(at))) {
        const char *name = at + 1;
        at = cost_space(cost_skip(at));
        if (!strncmp(name, key, length) && name[length] == '"') return at;
    }
    return NULL;
}

static int cost_text(const char *at, char *text, size_t room) {
    size_t length = at ? strcspn(at + 1, "\"\\") : room;
    if (length >= room) return 1;
    memcpy(text, at + 1, length);
    text[length] = 0;
    return 0;
}

static int cost_column(const char *at, int *n, double **column) {
    int room = 64;
    char *end;
    *column = malloc(room * sizeof(double));
    for (*n = 0, at = cost_space(at + 1); *at && *at != ']'; at = cost_space(end)) {
        if (*n == room) *column = realloc(*column, (room *= 2) * sizeof(double));
        (*column)[(*n)++] = strtod(at, &end);
        if (end == at) return 1;
    }
    return 0;
}

int cost_model_read(struct cost_model *model, const char *text) {
    static const char *names[] = {"size", "time", "low", "high"};
    const char *at = cost_space(text), *curves = cost_value(at, "curves"), *version = cost_value(at, "version");
    memset(model, 0, sizeof *model);
    if (!curves || !version || atoi(version) != 1) return 1;
    for (at = cost_space(curves + 1); *at == '{'; at = cost_space(cost_skip(at))) {
        model->curves = realloc(model->curves, (model->n + 1) * sizeof *model->curves);
        struct cost_curve *one = &model->curves[model->n++];
        if (cost_text(cost_value(at, "operation"), one->operation, sizeof one->operation)) return 1;
        if (cost_text(cost_value(at, "faults"), one->faults, sizeof one->faults)) return 1;
        one->machines = atoi(cost_value(at, "machines")), one->gpus = atoi(cost_value(at, "gpus"));
        for (int k = 0; k < COST_COLUMNS; k++) {
            const char *column = cost_value(at, names[k]);
            if (!column) one->column[k] = one->column[COST_TIME];
            else if (cost_column(column, &one->n, &one->column[k])) return 1;
        }
    }
    return model->n == 0;
}

const struct cost_curve *cost_model_curve(
    const struct cost_model *model, const char *operation, int machines, int gpus, const char *faults) {
    for (const struct cost_curve *one = model->curves; one < model->curves + model->n; one++)
        if (one->machines == machines && one->gpus == gpus && !strcmp(one->operation, operation) &&
            !strcmp(one->faults, faults))
            return one;
    return NULL;
}

int cost_curve_answer(const struct cost_curve *curve, double size, double times[3]) {
    const double *sizes = curve->column[COST_SIZE];
    int first = 0, last = curve->n; /* first becomes the number of sizes up to this one */
    if (!(size >= 0 && size <= sizes[curve->n - 1])) return 1;
    while (first < last) {
        int middle = (first + last) / 2;
        if (size < sizes[middle]) last = middle;
        else first = middle + 1;
    }
    int i = first ? first - 1 : 0, is_end = !first || i == curve->n - 1;
    double part = is_end ? 0 : (size - sizes[i]) / (sizes[i + 1] - sizes[i]);
    for (int k = 0; k < 3; k++) {
        const double *time = curve->column[COST_TIME + k];
        times[k] = is_end ? time[i] : time[i] + (time[i + 1] - time[i]) * part;
    }
    return 0;
}

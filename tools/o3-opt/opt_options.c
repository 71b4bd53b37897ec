/* The fixed options and the passes, which are options, too, go to getopt as one table. The passes depend on
 * the target, which may come after them: a first look at the command line finds it. Tables as o3c has one
 * (base/options.h) are fixed and fill fields; here passes, pipelines and checks run in the order in which
 * they are written. */
#include "opt_options.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "driver/overrides.h"

enum { MAX_PASSES = 200, FIRST_PASS = 1000 };
enum {
  OPT_PIPELINE = 256,
  OPT_VERIFY,
  OPT_DIM,
  OPT_SHAPE,
  OPT_VALUE,
  OPT_NO_FUSION,
  OPT_LOCATIONS,
  OPT_LIST,
  OPT_DIALECT,
  OPT_EQUAL
};

static const struct option FIXED[] = {{"pipeline", required_argument, NULL, OPT_PIPELINE},
                                      {"verify-stage", required_argument, NULL, OPT_VERIFY},
                                      {"level", required_argument, NULL, 'O'},
                                      {"target", required_argument, NULL, 't'},
                                      {"dim", required_argument, NULL, OPT_DIM},
                                      {"shape", required_argument, NULL, OPT_SHAPE},
                                      {"value", required_argument, NULL, OPT_VALUE},
                                      {"no-fusion", no_argument, NULL, OPT_NO_FUSION},
                                      {"locations", no_argument, NULL, OPT_LOCATIONS},
                                      {"check-equal", optional_argument, NULL, OPT_EQUAL},
                                      {"list-passes", no_argument, NULL, OPT_LIST},
                                      {"dialect", no_argument, NULL, OPT_DIALECT},
                                      {"help", no_argument, NULL, 'h'},
                                      {"version", no_argument, NULL, 'V'}};
enum { NUM_FIXED = sizeof(FIXED) / sizeof(FIXED[0]) };

static void fill_getopt(const o3_target_t *target, struct option *longs) {
  o3_pass_info_t pass;
  int count = NUM_FIXED;
  memcpy(longs, FIXED, sizeof(FIXED));
  for (int i = 0; i < MAX_PASSES && o3_pass_at(target, i, &pass); ++i)
    longs[count++] = (struct option){pass.name, no_argument, NULL, FIRST_PASS + i};
  longs[count] = (struct option){0};
}

static o3_status_t find_target(int argc, char **argv, const o3_target_t **target) {
  const char *name = o3_target_at(0)->name;
  for (int i = 1; i < argc; ++i) {
    if (!strncmp(argv[i], "--target=", 9)) name = argv[i] + 9;
    if ((!strcmp(argv[i], "--target") || !strcmp(argv[i], "-t")) && i + 1 < argc) name = argv[i + 1];
  }
  return o3_target_find(name, target);
}

static o3_status_t add_step(o3_arena_t *arena, opt_options_t *options, const opt_step_t *step) {
  opt_step_t *steps = O3_ARENA_ARRAY(arena, opt_step_t, (size_t)options->num_steps + 1);
  O3_TRY_ALLOC(steps);
  if (options->num_steps) memcpy(steps, options->steps, (size_t)options->num_steps * sizeof(*steps));
  steps[options->num_steps++] = *step;
  options->steps = steps;
  return NULL;
}

static o3_status_t add_pass(o3_arena_t *arena, opt_options_t *options, int index) {
  opt_step_t step = {.kind = OPT_STEP_PASS};
  o3_pass_at(options->target, index, &step.pass);
  return add_step(arena, options, &step);
}

static o3_status_t add_verify(o3_arena_t *arena, opt_options_t *options, const char *name) {
  opt_step_t step = {.kind = OPT_STEP_VERIFY};
  O3_TRY(o3_stage_find(name, &step.stage));
  if (o3_stage_has_module(step.stage)) return add_step(arena, options, &step);
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "stage '%s' leaves no module to verify", name);
}

static o3_status_t read_level(opt_options_t *options, const char *text) {
  const char *digit = text + (*text == 'O');
  if (*digit < '0' || *digit > '3' || digit[1])
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--level is '%s', one of 0, 1, 2, 3 is needed", text);
  options->compile.opt_level = *digit - '0';
  return NULL;
}

static o3_status_t read_seed(opt_options_t *options, const char *text) {
  char *end = NULL;
  options->check_equal = true;
  options->seed = text ? strtoull(text, &end, 10) : 0;
  if (!text || (*text >= '0' && *text <= '9' && !*end)) return NULL;
  return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "--check-equal is '%s', a whole number is needed",
                          text);
}

static o3_status_t take(o3_arena_t *arena, opt_options_t *options, int value, const char *argument) {
  if (value >= FIRST_PASS) return add_pass(arena, options, value - FIRST_PASS);
  switch (value) {
    case OPT_PIPELINE:
      return add_step(arena, options, &(opt_step_t){.kind = OPT_STEP_PIPELINE, .pipeline = argument});
    case OPT_VERIFY:
      return add_verify(arena, options, argument);
    case OPT_DIM:
      return o3_overrides_add_dim(arena, argument, &options->compile);
    case OPT_SHAPE:
      return o3_overrides_add_shape(arena, argument, &options->compile);
    case OPT_VALUE:
      return o3_overrides_add_value(arena, argument, &options->compile);
    case 'O':
      return read_level(options, argument);
    case 't':
      return NULL; /* find_target has read it */
    case OPT_NO_FUSION:
      options->compile.no_fusion = 1;
      return NULL;
    case OPT_EQUAL:
      return read_seed(options, argument);
    case OPT_LOCATIONS:
      options->locations = true;
      return NULL;
    case OPT_LIST:
      options->list_passes = true;
      return NULL;
    case OPT_DIALECT:
      options->dialect = true;
      return NULL;
    case 'h':
      options->help = true;
      return NULL;
    default:
      options->version = true;
      return NULL;
  }
}

static o3_status_t take_input(opt_options_t *options, int argc, char **argv) {
  bool asks = options->help || options->version || options->list_passes || options->dialect;
  if (argc - optind > 1)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "there are two inputs, '%s' and '%s': one is read",
                            argv[optind], argv[optind + 1]);
  if (argc == optind && !asks)
    return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "no input is given; - is stdin");
  options->input = argv[optind];
  return NULL;
}

o3_status_t opt_options_parse(o3_arena_t *arena, int argc, char **argv, opt_options_t *options) {
  *options = (opt_options_t){.compile = {.opt_level = 1}};
  O3_TRY(find_target(argc, argv, &options->target));
  struct option longs[NUM_FIXED + MAX_PASSES + 1];
  fill_getopt(options->target, longs);
  opterr = 0;
  for (int value; (value = getopt_long(argc, argv, ":O:t:hV", longs, NULL)) != -1;) {
    if (value == ':')
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT, "option %s needs an argument", argv[optind - 1]);
    if (value == '?')
      return o3_status_create(O3_STATUS_INVALID_ARGUMENT,
                              "there is no option or pass %s (--list-passes tells them)", argv[optind - 1]);
    O3_TRY(take(arena, options, value, optarg));
  }
  return take_input(options, argc, argv);
}

void opt_help_print(FILE *stream) {
  fputs(
      "usage: o3-opt [--PASS ...] [options] FILE.mlir\n\n"
      "Runs passes of the compiler on a module, - is stdin, and prints what they leave.\n"
      "Big constants are read from FILE.o3w or weights.o3w beside the file, if there.\n\n"
      "  --PASS                     run a pass; in the order given, as often as given\n"
      "  --pipeline TEXT            run MLIR's own passes: \"builtin.module(canonicalize,cse)\"\n"
      "  --verify-stage STAGE       fail unless the module is what STAGE may leave\n"
      "  -O, --level LEVEL          opt level that passes see, 0 to 3 (default 1)\n"
      "  -t, --target TARGET        target that passes see (default cpu, this machine)\n"
      "      --dim NAME=SIZE        fix a symbolic dimension; may be repeated\n"
      "      --shape NAME:1x3x?x8   fix an input's shape; may be repeated\n"
      "      --value NAME=NUMBER    fix what an integer input holds; may be repeated\n"
      "      --no-fusion            no kernels of several nodes\n"
      "      --check-equal[=SEED]   fail unless the last module computes what the first did, on\n"
      "                             random inputs; for modules up to stage rewrite, static sizes\n"
      "      --locations            print locations, too\n"
      "      --list-passes          list the passes: stage, name, least level, what it does\n"
      "      --dialect              print the o3 dialect as IRDL\n"
      "  -h, --help                 print this help\n"
      "  -V, --version              print the version\n\n"
      "Examples:\n"
      "  o3-opt --lower d/03-rewrite.mlir\n"
      "  o3-opt --normalize --pipeline \"builtin.module(canonicalize)\" d/01-import.mlir\n"
      "  o3-opt --verify-stage lower d/04-lower.mlir\n",
      stream);
}

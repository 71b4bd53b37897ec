# Short words for the scripts. BUILD is the build folder.
BUILD ?= build
export O3_BUILD = $(BUILD)
.PHONY: all setup check check-gpu bench-gpu demo lint format tidy bench fuzz install clean help

all: ## build the compiler, the tools and the unit tests (gcc, optimised, with line tables)
	@scripts/build.sh

setup: ## install what is missing: Debian packages and a Python environment in build/venv
	@scripts/setup.sh

check: ## set up, build, and run every test that needs no GPU; SUITES="lint unit" runs some
	@scripts/check.sh $(SUITES)

check-gpu: ## set up, build, and run the numeric rows on the NVIDIA GPU in this machine; skips without one
	@scripts/setup.sh
	@scripts/build.sh
	@O3_BUILD=$(abspath $(BUILD)) $(BUILD)/venv/bin/python test/gpu/gpu_cases.py check $(ROWS)
	@O3_BUILD=$(abspath $(BUILD)) $(BUILD)/venv/bin/python test/gpu/attention_models.py check
	@O3_BUILD=$(abspath $(BUILD)) $(BUILD)/venv/bin/python test/gpu/family_network.py check
	@test/gpu/make_kernels.sh $(BUILD) --checked && python3 test/gpu/check_kernels.py $(BUILD)/gpu-kernels

# What bench-gpu measures, all in about half an hour; TABLES, OPS and NETWORKS choose within a part, as in
#     make bench-gpu PARTS=networks NETWORKS="ResNet-50 8" MODES=compile
PARTS ?= kernels ops networks open
ifneq ($(filter-out kernels ops networks open,$(PARTS)),)
$(error PARTS is '$(PARTS)'; there are kernels, ops, networks and open)
endif
TABLES ?= products,long,convolutions,rows,chains,attention
MODES ?= eager,compile,max-autotune
PAGE = docs/benchmarks-gpu.md
bench-gpu: ## set up, build, and measure against PyTorch on this machine's NVIDIA GPU, or some PARTS; writes docs/benchmarks-gpu.md
	@scripts/setup.sh
	@scripts/build.sh
ifneq ($(filter kernels,$(PARTS)),)
	@test/gpu/make_kernels.sh $(BUILD) && python3 bench/compare_torch.py $(BUILD)/gpu-kernels --tables $(TABLES) --write $(PAGE)
endif
ifneq ($(filter ops,$(PARTS)),)
	@O3_BUILD=$(abspath $(BUILD)) python3 bench/torch_ops.py --only "$(OPS)" --write $(PAGE)
endif
ifneq ($(filter networks,$(PARTS)),)
	@O3_BUILD=$(abspath $(BUILD)) python3 bench/torch_networks.py --only "$(NETWORKS)" --modes $(MODES) --write $(PAGE)
endif
ifneq ($(filter open,$(PARTS)),)
	@O3_BUILD=$(abspath $(BUILD)) python3 bench/torch_networks.py --open --only "$(NETWORKS)" --write $(PAGE)
endif

demo: ## set up, build, and compile and run a sparse network
	@scripts/setup.sh packages
	@scripts/build.sh
	@scripts/demo.sh

lint: ## check the tree's rules: folders, lengths, headers, format, names, unused functions
	@scripts/lint.py

format: ## format all C code in place
	@scripts/lint.py --format

tidy: all ## run clang-tidy over the sources (minutes)
	@run-clang-tidy-22 -quiet -p $(BUILD) '/(src|runtime|tools)/'

bench: ## set up, build, and measure against ONNX Runtime and OpenVINO; minutes; WRITE=--write updates docs/benchmarks.md
	@scripts/setup.sh
	@scripts/build.sh
	@O3_BUILD=$(abspath $(BUILD)) $(BUILD)/venv/bin/python bench/compare_cpu.py $(WRITE)

fuzz: ## fuzz the readers of foreign files; FUZZ_SECONDS=60
	@scripts/setup.sh
	@test/fuzz/run.sh

install: all ## install into PREFIX (default /usr/local); DESTDIR is honoured
	@cmake --install $(BUILD) $(if $(PREFIX),--prefix $(PREFIX))

clean: ## remove the build folder
	rm -rf $(BUILD)

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/\1\t\2/p' Makefile | expand -t 12

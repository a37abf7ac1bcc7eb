# tests.mk: rules of tests, checks and measurements alone; the Makefile includes it. tests/README.md says what there is.

# A path below $(BUILD) as one word of the shell, whatever folder this is.
absolute = $(call quoted,$(abspath $(BUILD)/$(1)))

TEST_SOURCES := $(wildcard tests/unit/test_*.c tests/property/test_*.c)
TEST_PROGRAMS := $(TEST_SOURCES:%.c=$(BUILD)/%)
.PHONY: tests unit-tests quick-tests shared-tests replays fuzzers check check-all check-fast bench tsan validate validate-net gpu-kit validate-gpu valgrind format lint cov counts-accept \
  mcdc mutate fuzz golden-accept accuracy generalize formulas fuzz-programs slurm-faults
# Two fuzzers compare with jansson, which nothing else uses.
HAVE_JANSSON := $(shell $(PKG_CONFIG) --exists jansson 2>/dev/null && echo 1)
JANSSON_FUZZERS := tests/fuzz/fuzz_json_differ.c tests/fuzz/fuzz_output.c
FUZZ_SOURCES := $(filter-out $(if $(HAVE_JANSSON),,$(JANSSON_FUZZERS)),$(wildcard tests/fuzz/fuzz_*.c))
REPLAY_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(BUILD)/tests/fuzz/replay_%)
FUZZ_PROGRAMS := $(FUZZ_SOURCES:tests/fuzz/%.c=$(BUILD)/tests/fuzz/%)
# The same programs on a GPU that is none: fake CUDA libraries, with headers of their own (tests/fake_cuda/fake_gpu.h).
FAKE := $(BUILD)/fake_cuda
FAKE_LIBRARIES := $(addprefix $(FAKE)/,libfakegpu.so libcudart.so libcublas.so libcublasLt.so libcudnn.so libnccl.so libnvidia-ml.so.1 libcuda.so.1)
FAKE_PROGRAMS := $(addprefix $(FAKE)/,dlmodel-probe-cuda dlmodel-probe-cudnn dlmodel-probe-nccl)
$(FAKE)/%.o: %.c $(BUILD)/flags
	$(Q)mkdir -p $(@D)
	$(call say,CC,$@) $(CC) $(BASE_FLAGS) -fvisibility=default -isystem tests/fake_cuda/include $(FAKE_FLAGS) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
fake_objects = $(patsubst %.c,$(FAKE)/%.o,$(wildcard $(1)))
$(call fake_objects,calibrate/probes/nccl/*.c): FAKE_FLAGS := $(if $(HAVE_MPI),$(MPI_CFLAGS) -DDL_HAVE_MPI)
$(call fake_objects,calibrate/probes/nccl/*.c): $(BUILD)/parts
fake_library = $(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) -shared -Wl,-soname,$(@F) $(filter %.o,$^) -o $@ -L$(FAKE) $(1) -lm
$(FAKE)/libfakegpu.so: $(FAKE)/tests/fake_cuda/fake_core.o
	$(call fake_library)
$(FAKE)/libcudart.so: $(FAKE)/tests/fake_cuda/fake_cudart.o $(FAKE)/libfakegpu.so
	$(call fake_library,-lfakegpu)
$(FAKE)/libcublas.so: $(FAKE)/tests/fake_cuda/fake_cublas.o $(FAKE)/libfakegpu.so
	$(call fake_library,-lfakegpu)
$(FAKE)/libcublasLt.so: $(FAKE)/tests/fake_cuda/fake_cublaslt.o $(FAKE)/libfakegpu.so
	$(call fake_library,-lfakegpu)
$(FAKE)/libcudnn.so: $(call fake_objects,tests/fake_cuda/fake_cudnn*.c) $(FAKE)/libfakegpu.so
	$(call fake_library,-lfakegpu)
$(FAKE)/libnccl.so: $(FAKE)/tests/fake_cuda/fake_nccl.o $(FAKE)/libfakegpu.so
	$(call fake_library,-lfakegpu)
$(FAKE)/libnvidia-ml.so.1: $(FAKE)/tests/fake_cuda/fake_nvml.o
	$(call fake_library)
$(FAKE)/libcuda.so.1: $(FAKE)/tests/fake_cuda/fake_driver.o
	$(call fake_library)
fake_program = $(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $(filter %.o,$^) -o $@ -L$(FAKE) $(1) -lcudart -lfakegpu -ldl $(LIBS)
$(FAKE)/dlmodel-probe-cuda: $(call fake_objects,calibrate/probes/cuda/*.c calibrate/probes/gpu/*.c) $(PROBE_COMMON) $(MODEL_OBJECTS) $(FAKE_LIBRARIES)
	$(call fake_program,-lcublas -lcublasLt)
$(FAKE)/dlmodel-probe-cudnn: $(call fake_objects,calibrate/probes/cudnn/*.c calibrate/probes/gpu/*.c) $(PROBE_COMMON) $(MODEL_OBJECTS) $(FAKE_LIBRARIES)
	$(call fake_program,-lcudnn -lcublas)
$(FAKE)/dlmodel-probe-nccl: $(call fake_objects,calibrate/probes/nccl/*.c calibrate/probes/gpu/*.c) $(PROBE_COMMON) $(MODEL_OBJECTS) $(FAKE_LIBRARIES)
	$(call fake_program,-lnccl $(if $(HAVE_MPI),$(MPI_LIBS)))

# A test links what it calls and no more: links of a hundred programs are most of what building the tests takes.
TEST_LIBRARY := $(BUILD)/tests/library.a
$(TEST_LIBRARY): $(LIBRARY_OBJECTS)
	$(Q)mkdir -p $(@D)
	$(call say,AR,$@) rm -f $@; $(AR) rcsT $@ $^
# For mutants and MC/DC (SHARED_TESTS=1, with names visible) one library that all load, and before it one in whose place
# tests/mutate.py puts a mutant: nothing is linked again for it.
SHARED_TESTS ?= 0
ifneq ($(SHARED_TESTS),0)
TESTED := $(BUILD)/tests/libtested.so
PLAIN_MUTANT := $(BUILD)/tests/plain/libmutant.so
$(TESTED): $(LIBRARY_OBJECTS)
	$(Q)mkdir -p $(@D)
	$(call say,LINK,$@) $(CC) $(LDFLAGS) -shared $^ -o $@ $(LIBS)
$(PLAIN_MUTANT): $(BUILD)/flags
	$(Q)mkdir -p $(@D)
	$(Q)echo 'extern int dl_no_mutant; int dl_no_mutant;' | $(CC) -shared -fPIC -x c - -o $@
link_shared = $(call say,LINK,$@) $(CC) $(LDFLAGS) $(filter %.o,$^) -o $@ -Wl,--no-as-needed -L$(BUILD)/tests/plain -lmutant \
  -L$(BUILD)/tests -ltested -Wl,--enable-new-dtags,-rpath,$(call quoted,$(CURDIR)/$(BUILD)/tests/plain:$(CURDIR)/$(BUILD)/tests) -Wl,--as-needed
$(TEST_PROGRAMS): $(BUILD)/tests/%: $(BUILD)/tests/%.o $(TESTED) $(PLAIN_MUTANT)
	$(link_shared) -lcmocka $(LIBS)
$(BUILD)/tests/dlmodel: $(BUILD)/dlmodel.o $(TESTED) $(PLAIN_MUTANT)
	$(link_shared) $(LIBS)
	$(Q)cp $@ $(BUILD)/dlmodel; ln -sfn $(call quoted,$(CURDIR)) $(BUILD)/source
shared-tests: $(BUILD)/tests/dlmodel $(TEST_PROGRAMS)
endif
$(BUILD)/tests/unit/%: $(BUILD)/tests/unit/%.o $(TEST_LIBRARY)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ -lcmocka $(LIBS)
$(BUILD)/tests/property/%: $(BUILD)/tests/property/%.o $(TEST_LIBRARY)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ -lcmocka $(LIBS)
JANSSON_PROGRAMS := $(JANSSON_FUZZERS:tests/fuzz/%.c=$(BUILD)/tests/fuzz/%) $(JANSSON_FUZZERS:tests/fuzz/%.c=$(BUILD)/tests/fuzz/replay_%)
$(JANSSON_PROGRAMS): FUZZ_LIBS := -ljansson -lcmocka
ifneq ($(ONNX_OBJECT),)
$(BUILD)/tests/fuzz/fuzz_onnx.o: FILE_FLAGS := -DDL_HAVE_PROTOBUF_C -I$(BUILD) $(PROTOBUF_C_CFLAGS)
$(BUILD)/tests/fuzz/fuzz_onnx.o: $(BUILD)/import/onnx.pb-c.h
endif
$(BUILD)/tests/fuzz/replay_%: $(BUILD)/tests/fuzz/%.o $(BUILD)/tests/fuzz/replay_main.o $(TEST_LIBRARY)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(FUZZ_LIBS) $(LIBS)
# Fuzzers link the instrumented library: `make fuzz` builds both with clang in a folder of their own.
FUZZ_LINK ?= $(FUZZ_LINK_sanitized)
$(BUILD)/tests/fuzz/fuzz_%: $(BUILD)/tests/fuzz/fuzz_%.o $(TEST_LIBRARY)
	$(call say,FUZZ,$@) $(CC) $(FUZZ_LINK) $^ -o $@ $(FUZZ_LIBS) $(LIBS)

# Calls that fail, for tests/cli/faults.sh.
FAULT_LIBRARY := $(BUILD)/tests/fault/libfault.so
$(FAULT_LIBRARY): tests/fault/fault.c
	$(Q)mkdir -p $(@D)
	$(call say,CC,$<) $(CC) -std=c11 -O1 -Wall -Wextra -shared -fPIC $< -o $@ -ldl

tests: $(FAULT_LIBRARY) $(TEST_PROGRAMS) $(REPLAY_PROGRAMS) $(FAKE_PROGRAMS) ## build the tests
unit-tests: $(filter $(BUILD)/tests/unit/%,$(TEST_PROGRAMS))
replays: $(REPLAY_PROGRAMS)

check: ## set up, build, run every test, then the parts and wrong input again under ASan and UBSan (minutes)
	$(call set_up,check)
	+$(Q)JOBS=$(JOBS) BUILD=$(BUILD) MAKE="$(MAKE)" sh tests/run check

CHECKED ?= 0
check-all: ## check, and what takes longer: all under sanitizers, without optional libraries, long Slurm rounds (CHECKED=1: that alone)
	$(call set_up,rest)
	+$(Q)JOBS=$(JOBS) BUILD=$(BUILD) MAKE="$(MAKE)" sh tests/run $(if $(filter 0,$(CHECKED)),all,rest)

check-fast: ## unit and property tests only, without sanitizers
	+$(Q)JOBS=$(JOBS) BUILD=$(BUILD) MAKE="$(MAKE)" sh tests/run fast

# Built with SANITIZE=thread in a folder of its own, as `make tsan` does, it finds races.
$(BUILD)/tests/threads/threads: $(BUILD)/tests/threads/threads.o $(patsubst %.c,$(BUILD)/%.o,$(wildcard library/*.c)) $(BUILD)/libdlmodel.a
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)
tsan: ## eight threads in one context of libdlmodel under ThreadSanitizer
	+$(Q)$(MAKE) --no-print-directory -j$(JOBS) SANITIZE=thread BUILD=build-tsan build-tsan/tests/threads/threads
	$(Q)TSAN_OPTIONS=halt_on_error=1 build-tsan/tests/threads/threads data

bench: all $(BUILD)/tests/threads/threads $(BUILD)/tests/bench/bench $(BUILD)/tests/bench/spawn ## timings: one layer, one collective, one prediction, one process
	$(Q)sh tests/bench/run.sh $(BUILD)
$(BUILD)/tests/bench/bench: $(BUILD)/tests/bench/bench.o $(TEST_LIBRARY)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(LIBS)

$(BUILD)/tests/bench/spawn: $(BUILD)/tests/bench/spawn.o
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@

slurm-faults: all ## ROUNDS=200 rounds of faults on a real Slurm by SEED (root; 12 s a round)
	$(Q)mkdir -p $(BUILD)/slurm-faults; DLMODEL=$(call absolute,dlmodel) SCRATCH=$(call absolute,slurm-faults) SEED=$(or $(SEED),1) ROUNDS=$(or $(ROUNDS),200) \
	  FAULTS_TABLE=$(BUILD)/slurm-faults.md /usr/bin/python3 tests/slurm/faults.py; status=$$?; rm -rf $(BUILD)/slurm-faults; exit $$status

validate: all ## predicted against measured on the Slurm test bed: PyTorch, TensorFlow, Keras, MXNet, Horovod (root, 45 minutes, quiet machine)
	$(Q)DLMODEL=$(call absolute,dlmodel) bash tests/slurm/validate.sh

validate-net: all $(BUILD)/tests/unit/test_network ## measure the test network afresh (root, 5 minutes, quiet machine) and judge it strictly
	$(Q)mkdir -p $(BUILD)/net; SCRATCH=$(call absolute,net) sh tests/net/record.sh $(BUILD) > $(BUILD)/net/samples
	$(Q)DL_NET_SAMPLES=$(BUILD)/net/samples $(BUILD)/tests/unit/test_network

gpu-kit: all ## a folder that measures a GPU where there is neither a network nor packages: build/gpu-kit, CONTRIBUTING.md
	$(Q)BUILD=$(BUILD) sh tools/gpu_kit

validate-gpu: gpu-kit ## on a machine with a GPU and PyTorch: profile, runs and kernels, compared with predictions (8 minutes)
	$(Q)$(PYTHON) $(BUILD)/gpu-kit/run.py --out $(BUILD)/gpu

accuracy: all formulas ## write what is generated in README.md and docs/: errors, sample outputs, index of formulas
	$(Q)sh tools/cpu_accuracy.sh $(BUILD)/dlmodel
	$(Q)sh tools/accuracy.sh $(BUILD)/dlmodel
	$(Q)sh tools/memory.sh $(BUILD)/dlmodel
	$(Q)sh tools/known.sh $(BUILD)/dlmodel
	$(Q)sh tools/chosen.sh $(BUILD)/dlmodel
	$(Q)sh tools/settings.sh $(BUILD)/dlmodel
	$(Q)sh tools/learning.sh $(BUILD)/dlmodel
	$(Q)sh tools/samples.sh $(BUILD)/dlmodel

generalize: all ## errors of runs that no fit has seen, and the intervals that follow from them (minutes): docs/generalize, data/intervals.json
	$(Q)sh tools/generalize.sh $(BUILD)/dlmodel

formulas: ## write docs/formulas.md, the index of formulas
	$(Q)sh tools/formulas.sh

RECORDED := $(filter $(BUILD)/tests/unit/test_golden_%,$(TEST_PROGRAMS)) $(BUILD)/tests/unit/test_text_cases
golden-accept: all $(RECORDED) ## record the present output as the expected one (review the diff)
	$(Q)DLMODEL=$(call absolute,dlmodel) sh tests/golden/golden.sh accept
	$(Q)for t in $(RECORDED); do DL_ACCEPT=1 "$$t" || exit 1; done
	$(Q)DLMODEL=$(call absolute,dlmodel) sh tools/decisions.sh > docs/decisions.md
	$(Q)python3 tools/python_types.py $(call absolute,dlmodel) > python/dlmodel/typed.py

counts-accept: ## record how many checks each script of the last run has (tests/counts.txt); a later run with fewer fails
	$(Q)awk '{ name = $$0; sub(/^[0-9]+ /, "", name); count[name] = $$1 } END { for (name in count) print count[name], name }' \
	  tests/counts.txt $(BUILD)/test-counts | LC_ALL=C sort -k 2 > tests/counts.txt.new && mv tests/counts.txt.new tests/counts.txt

valgrind: all ## the main commands under valgrind (a few minutes)
	$(Q)sh tests/valgrind.sh $(call absolute,dlmodel)

format: ## clang-format (release 14) over all C files
	$(Q)git ls-files '*.c' '*.h' | xargs clang-format -i

lint: ## layers, headers, form, shell scripts; cppcheck and clang-tidy where they are
	$(Q)sh tests/lint.sh all

# Threads count too (atomic), nothing is optimised away (-O0). What is left out, and why: tests/cov.sh.
cov: ## line and branch coverage of model/ by the unit and property tests (needs gcovr; 5 minutes)
	@command -v gcovr > /dev/null || { echo 'error: coverage needs gcovr: make deps DEPS=all, or apt install gcovr' >&2; exit 1; }
	+$(Q)$(MAKE) --no-print-directory -j$(JOBS) BUILD=build-cov OPTIMIZE="-O0 -g --coverage -fprofile-update=atomic -DDL_ONE_COPY" LDFLAGS="$(LDFLAGS) --coverage" quick-tests
	$(Q)BUILD=build-cov sh tests/cov.sh
quick-tests: $(BUILD)/dlmodel $(TEST_PROGRAMS)

# clang counts conditions from release 18 on. The reach of each test is kept: only what changed runs again (COMMIT would change all).
CLANG ?= $(firstword $(foreach n,22 21 20 19 18,$(if $(shell command -v clang-$(n) 2> /dev/null),clang-$(n))) clang)
LLVM = $(patsubst clang%,%,$(CLANG))
MUTANTS ?= 500
SEED ?= 1
# seconds of tests that a mutant may take
PATIENCE ?= 20
shared = $(MAKE) --no-print-directory -j$(JOBS) SHARED_TESTS=1 HARDENING=0 COMMIT=none
mcdc: ## modified condition/decision coverage of model/ by the unit and property tests (needs clang 18 and llvm; 10 minutes)
	@echo 'int main(int n, char **v) { return n > 1 && v; }' | $(CLANG) -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc -x c - -o /dev/null 2> /dev/null && \
	  command -v llvm-cov$(LLVM) > /dev/null || { echo 'skip mcdc: no clang with -fcoverage-mcdc and its llvm-cov here (18 or later): make deps DEPS=all'; exit 0; }; \
	$(shared) BUILD=build-mcdc CC="$(CLANG)" LDFLAGS="$(LDFLAGS) -fprofile-instr-generate" \
	  OPTIMIZE="-O0 -fvisibility=default -fprofile-instr-generate -fcoverage-mapping -fcoverage-mcdc -DDL_ONE_COPY" shared-tests && \
	$(PYTHON) tests/mutation/reach.py build-mcdc $(LLVM) && $(PYTHON) tests/mutation/mcdc.py build-mcdc $(LLVM)

mutate: ## mutation score of model/: MUTANTS changes drawn by SEED, against unit and property tests and goldens (goes on where it was; after mcdc faster)
	@$(PYTHON) -c 'import universalmutator' 2> /dev/null || { echo 'skip mutate: no universalmutator here: pip install --no-deps universalmutator'; exit 0; }; \
	$(shared) BUILD=build-mutate OPTIMIZE="-O1 -fvisibility=default" shared-tests && \
	$(PYTHON) tests/mutation/mutate.py build-mutate build-mcdc/reach.json --seed $(SEED) --count $(MUTANTS) --patience $(PATIENCE) \
	  --cc "$(CC)" --flags "-std=c11 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fPIC -O1 -fvisibility=default -I." $(MUTATE_FLAGS)

# FUZZ=fast traps where the other reports, and leaves AddressSanitizer out: several times as many inputs a second.
FUZZ ?= sanitized
FUZZ_CC ?= clang
FUZZ_BUILD := build-fuzz$(if $(filter fast,$(FUZZ)),-fast)
FUZZ_CHECKS := undefined,float-cast-overflow
FUZZ_OPTIMIZE_sanitized := -O1 -g -fsanitize=fuzzer-no-link,address,$(FUZZ_CHECKS) -fno-sanitize-recover=all
FUZZ_OPTIMIZE_fast := -O2 -g1 -fsanitize-coverage=inline-8bit-counters,pc-table -fsanitize=$(FUZZ_CHECKS) -fsanitize-trap=all \
  -ffunction-sections -fdata-sections -DDL_ARENA_BLOCK_BYTES=960
FUZZ_LINK_sanitized := -fsanitize=fuzzer,address,$(FUZZ_CHECKS)
# at each run libFuzzer goes through the counters of all that is linked: what the fuzzer does not call stays out
FUZZ_LINK_fast := -fsanitize=fuzzer -Wl,--gc-sections,-z,start-stop-gc
fuzz-programs:
	@command -v clang > /dev/null || { echo 'error: the fuzzers need clang with libFuzzer: make deps DEPS=all, or apt install clang libclang-rt-14-dev' >&2; exit 1; }
	+$(Q)$(MAKE) --no-print-directory -j$(JOBS) BUILD=$(FUZZ_BUILD) HARDENING=0 CC="$(FUZZ_CC)" OPTIMIZE="$(FUZZ_OPTIMIZE_$(FUZZ))" \
	  FUZZ_LINK="$(FUZZ_LINK_$(FUZZ))" fuzzers
fuzz: fuzz-programs ## every fuzzer for FUZZ_SECONDS each (needs clang; FUZZ=fast: more inputs, fewer checks)
	$(Q)TURNS=1 sh tests/fuzz/campaign.sh $(FUZZ_BUILD) $(FUZZ_SECONDS)
fuzzers: $(FUZZ_PROGRAMS)

-include $(TEST_SOURCES:%.c=$(BUILD)/%.d) $(FUZZ_SOURCES:%.c=$(BUILD)/%.d) $(BUILD)/tests/fuzz/replay_main.d $(BUILD)/tests/bench/bench.d $(BUILD)/tests/threads/threads.d \
  $(wildcard $(BUILD)/fake_cuda/calibrate/probes/*/*.d $(BUILD)/fake_cuda/tests/fake_cuda/*.d)

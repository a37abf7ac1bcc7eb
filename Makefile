# dlmodel: `make help` lists the targets. One makefile; objects mirror the sources below $(BUILD).

SANITIZE ?=
BUILD ?= build$(if $(SANITIZE),-san)
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
# Names of targets cannot contain blanks, and the installed paths are strings of C and of the shell.
ifneq ($(words $(BUILD)),1)
  $(error BUILD: expected the name of a folder without blanks, got "$(BUILD)")
endif
single_quote := '
ifneq ($(findstring ",$(PREFIX)$(LIBDIR))$(findstring \,$(PREFIX)$(LIBDIR))$(findstring $(single_quote),$(PREFIX)$(LIBDIR)),)
  $(error PREFIX and LIBDIR: expected paths without quotes and backslashes)
endif
VERSION := 0.2.0
# Of a source archive git writes the commit into that file.
COMMIT := $(or $(if $(wildcard .git),$(shell git rev-parse --short HEAD 2>/dev/null)),$(shell grep -v Format packaging/commit.txt),unknown)
ifeq ($(origin CC),default)
  CC := gcc
endif
PKG_CONFIG ?= pkg-config
CUDA_HOME ?= /usr/local/cuda
PYTHON ?= python3
JOBS ?= $(shell nproc 2>/dev/null || echo 1)
V ?= 0
DEVELOPER ?= 0
FUZZ_SECONDS ?= 600
# Optional parts: auto (use it when it is there), 1 (it must be there), 0 (build without).
CUDA ?= auto
NCCL ?= auto
CUDNN ?= auto
MPI ?= auto
ONEDNN ?= auto
OPENBLAS ?= auto
PROTOBUF_C ?= auto
LIBYAML ?= auto
ZLIB ?= auto
SQLITE ?= auto
PROTOC_C ?= protoc-c
MICROHTTPD ?= auto
# The program takes libraries from archives: auto (those that are there), 0 (shared ones, as distributions want them).
STATIC ?= auto
export CUDA NCCL CUDNN MPI ONEDNN OPENBLAS PROTOBUF_C PROTOC_C LIBYAML ZLIB SQLITE MICROHTTPD STATIC CC CPPFLAGS CFLAGS LDFLAGS PKG_CONFIG CUDA_HOME

ifeq ($(V),0)
  Q := @
  say = @printf '  %-5s %s\n' $(1) $(2);
else
  Q :=
  say =
endif

WARNINGS := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wwrite-strings -Wvla
ifneq ($(DEVELOPER),0)
  WARNINGS += -Werror
endif
OPTIMIZE ?= -O2 -g
# Objects serve programs and libdlmodel.so alike; hidden names are called directly, as in a program of its own.
BASE_FLAGS := -std=c11 -D_POSIX_C_SOURCE=200809L -ffp-contract=off -fPIC -fvisibility=hidden $(OPTIMIZE) $(WARNINGS) -I. -MMD -MP
# Hardening costs nothing measurable and turns what a missed bound would do into an orderly abort. The sanitizers bring their own.
HARDENING ?= 1
ifeq ($(HARDENING)$(SANITIZE),1)
  BASE_FLAGS += -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -fstack-protector-strong -fstack-clash-protection \
    $(if $(filter x86_64,$(shell uname -m)),-fcf-protection)
  # packed: 12,000 addresses in tables take two pages instead of seventy, and a third less time at each start
  LINK_FLAGS := -pie -Wl,-z,relro,-z,now,-z,noexecstack,-z,pack-relative-relocs
  SHARED_FLAGS := -Wl,-z,relro,-z,now,-z,noexecstack
endif
ifneq ($(SANITIZE),)
  BASE_FLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer -fno-sanitize-recover=all
  LINK_FLAGS := -fsanitize=$(SANITIZE)
endif
# What changes with PREFIX, commit or features is told to the few files that ask; they alone are compiled again.
ABOUT = -DDLMODEL_VERSION='"$(VERSION)"' -DDLMODEL_COMMIT='"$(COMMIT)"' -DDL_FEATURES='"$(FEATURES)"' \
  -DDLMODEL_DATADIR='"$(PREFIX)/share/dlmodel/data"' -DDLMODEL_SHAREDIR='"$(PREFIX)/share/dlmodel"' \
  -DDLMODEL_LIBEXECDIR='"$(PREFIX)/libexec/dlmodel"'
# Folders of the program and of libdlmodel, each of which may include those before it (calibrate and slurm: model and process alone).
ROOMS := model process import predict fits plots library calibrate slurm
# All C files below these folders.
sources = $(shell find $(1) -name '*.c' | LC_ALL=C sort)
ABOUT_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(shell grep -lE '^\#ifndef DL(MODEL_[A-Z]+|_FEATURES)$$' dlmodel.c $(call sources,$(ROOMS) serve)))
LIBS := -lcjson -lgsl -lgslcblas -lm -lpthread

# What this machine has is found by compiling and linking a few lines (packaging/features.sh), and kept in config.mk. Goals that must
# work on a bare machine, or that call make again, do without.
CONFIG := $(BUILD)/config.mk
BARE_GOALS := formulas help deps features objects check check-all check-fast demo format lint cov fuzz fuzz-programs dist uninstall clean
# Found again when an answer could differ: another compiler, other flags, another choice, packages installed since. (A phony target
# would be made again too, but make would not read it again.)
FEATURE_KEY := $(CC) $(CUDA) $(NCCL) $(CUDNN) $(MPI) $(ONEDNN) $(OPENBLAS) $(PROTOBUF_C) $(PROTOC_C) $(LIBYAML) $(ZLIB) $(SQLITE) $(MICROHTTPD) $(STATIC) $(CUDA_HOME) $(subst ",,$(CPPFLAGS) $(CFLAGS) $(LDFLAGS))
ifneq ($(filter-out $(BARE_GOALS),$(or $(MAKECMDGOALS),all)),)
  include $(CONFIG)
  ifneq ($(strip $(FEATURE_KEY)),$(strip $(CONFIG_KEY)))
    $(if $(MAKE_RESTARTS),,$(shell rm -f $(CONFIG)))
  endif
endif
$(CONFIG): packaging/features.sh $(wildcard /var/lib/dpkg/status)
	$(Q)mkdir -p $(BUILD)
	$(Q)CONFIG_KEY="$(FEATURE_KEY)" sh packaging/features.sh $(BUILD)

LIBRARY_SOURCES := $(filter-out calibrate/probes/%,$(call sources,$(ROOMS)))
LIBRARY_OBJECTS := $(LIBRARY_SOURCES:%.c=$(BUILD)/%.o)
# The service; without libmicrohttpd all but HTTP and the processes behind it: `mcp` answers the same requests, and `serve` says so.
SERVE_HTTP := $(wildcard serve/http*.c) $(addprefix serve/,mhd.c metrics.c page_data.c pool.c sandbox.c server.c spawner.c worker.c)
SERVE_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(if $(HAVE_MICROHTTPD),,$(SERVE_HTTP)),$(call sources,serve)))
LIBRARY_OBJECTS += $(SERVE_OBJECTS)
# The reader of ONNX files is generated from the messages' description.
ONNX_OBJECT := $(if $(HAVE_PROTOBUF_C),$(BUILD)/import/onnx.pb-c.o)
LIBRARY_OBJECTS += $(ONNX_OBJECT)
# `help theory` prints the manual that the program was built with.
THEORY_OBJECT := $(BUILD)/predict/manual/theory_text.o
LIBRARY_OBJECTS += $(THEORY_OBJECT)
LIBS += $(PROTOBUF_C_LIBS) $(LIBYAML_LIBS) $(ZLIB_LIBS) $(SQLITE_LIBS) $(if $(HAVE_MICROHTTPD),-ldl)
# Of the program alone: the archives in place of the shared libraries, in the order in which they need each other.
PROGRAM_LIBS = $(filter-out $(if $(GSL_ARCHIVES),-lgsl -lgslcblas) $(if $(PROTOBUF_C_ARCHIVES),-lprotobuf-c) $(if $(LIBYAML_ARCHIVES),-lyaml) $(if $(ZLIB_ARCHIVES),-lz) $(if $(SQLITE_ARCHIVES),-lsqlite3),\
  $(GSL_ARCHIVES) $(PROTOBUF_C_ARCHIVES) $(LIBYAML_ARCHIVES) $(SQLITE_ARCHIVES) $(ZLIB_ARCHIVES) $(LIBS))
MODEL_OBJECTS := $(patsubst %.c,$(BUILD)/%.o,$(call sources,model))
PROBE_COMMON := $(patsubst %.c,$(BUILD)/%.o,$(wildcard calibrate/probes/common/*.c))
PROBE_CPU := $(patsubst %.c,$(BUILD)/%.o,$(wildcard calibrate/probes/cpu/*.c))
PROBE_MPI := $(patsubst %.c,$(BUILD)/%.o,$(wildcard calibrate/probes/mpi/*.c))
PROBE_GPU := $(patsubst %.c,$(BUILD)/%.o,$(wildcard calibrate/probes/gpu/*.c))
PROBE_CUDA := $(patsubst %.c,$(BUILD)/%.o,$(wildcard calibrate/probes/cuda/*.c))
PROBE_CUDNN := $(patsubst %.c,$(BUILD)/%.o,$(wildcard calibrate/probes/cudnn/*.c))
PROBE_NCCL := $(patsubst %.c,$(BUILD)/%.o,$(wildcard calibrate/probes/nccl/*.c))
PROGRAMS := $(BUILD)/dlmodel $(if $(PROBE_CPU),$(BUILD)/dlmodel-probe-cpu) \
  $(if $(and $(PROBE_MPI),$(HAVE_MPI)),$(BUILD)/dlmodel-probe-mpi) $(if $(HAVE_CUDA),$(BUILD)/dlmodel-probe-cuda \
  $(if $(HAVE_CUDNN),$(BUILD)/dlmodel-probe-cudnn) $(if $(HAVE_NCCL),$(BUILD)/dlmodel-probe-nccl))
# The same predictions for other programs: include/dlmodel.h. The shared library's number changes with its interface.
SONAME := libdlmodel.so.0
LIBRARIES := $(BUILD)/libdlmodel.a $(BUILD)/$(SONAME) $(BUILD)/dlmodel.pc
API_OBJECTS := $(filter $(foreach room,model process import predict fits plots library,$(BUILD)/$(room)/%.o),$(LIBRARY_OBJECTS))

.DEFAULT_GOAL := all
.PHONY: all objects help deps features demo plots install uninstall sbom wheel dist clean
.PRECIOUS: $(BUILD)/%.o
.DELETE_ON_ERROR:

all: $(PROGRAMS) $(LIBRARIES) ## build dlmodel, the probes and libdlmodel
	$(Q)ln -sfn $(call quoted,$(CURDIR)) $(BUILD)/source
ifeq ($(BUILD),build)
	$(Q)ln -sfn build/dlmodel dlmodel
endif

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' Makefile tests/tests.mk | sed 's/:.*## /\t/' | expand -t 16
	@printf '\nVariables: BUILD PREFIX DESTDIR CC CFLAGS V=1 DEVELOPER=1 HARDENING=0 SANITIZE=address,undefined FUZZ_SECONDS DEPS=build|demo|check|rest|all\n'
	@printf 'Optional parts (auto|1|0): CUDA NCCL CUDNN MPI ONEDNN OPENBLAS PROTOBUF_C LIBYAML ZLIB SQLITE MICROHTTPD; STATIC=0: shared libraries alone\n'

DEPS ?= check
deps: ## install what is missing for `make check`, or DEPS=build|demo|rest|all (says what; apt only)
	$(Q)sh packaging/deps.sh $(DEPS)

features: ## look again what is here, and say how to get the rest
	$(Q)mkdir -p $(BUILD)
	$(Q)CONFIG_KEY="$(FEATURE_KEY)" sh packaging/features.sh $(BUILD)

# Another set of flags rebuilds everything; another set of optional parts, what asks for them.
FLAGS_NOW = $(CC) $(BASE_FLAGS) $(CPPFLAGS) $(CFLAGS)
PARTS_NOW = $(foreach part,MPI ONEDNN OPENBLAS CUDA PROTOBUF_C LIBYAML ZLIB SQLITE MICROHTTPD,$(if $(HAVE_$(part)),$(part) $($(part)_CFLAGS)))
stamp = mkdir -p $(BUILD); printf '%s\n' "$(subst ",',$(1))" | cmp -s - $@ || printf '%s\n' "$(subst ",',$(1))" > $@
$(BUILD)/flags: FORCE
	$(Q)$(call stamp,$(FLAGS_NOW))
$(BUILD)/parts: FORCE
	$(Q)$(call stamp,$(PARTS_NOW))
$(BUILD)/about: FORCE
	$(Q)$(call stamp,$(ABOUT))
FORCE:

$(BUILD)/%.o: %.c $(BUILD)/flags
	$(Q)mkdir -p $(@D)
	$(call say,CC,$<) $(CC) $(BASE_FLAGS) $(FILE_FLAGS) $(CPPFLAGS) $(CFLAGS) -c $< -o $@

$(PROBE_MPI): FILE_FLAGS := $(MPI_CFLAGS) -DDL_HAVE_MPI
$(PROBE_CPU): FILE_FLAGS := $(if $(HAVE_ONEDNN),-DDL_HAVE_ONEDNN) $(if $(HAVE_OPENBLAS),-DDL_HAVE_OPENBLAS $(OPENBLAS_CFLAGS))
$(PROBE_GPU) $(PROBE_CUDA) $(PROBE_CUDNN): FILE_FLAGS := $(CUDA_CFLAGS)
$(PROBE_NCCL): FILE_FLAGS := $(CUDA_CFLAGS) $(if $(HAVE_MPI),$(MPI_CFLAGS) -DDL_HAVE_MPI)
$(PROBE_MPI) $(PROBE_CPU) $(PROBE_GPU) $(PROBE_CUDA) $(PROBE_CUDNN) $(PROBE_NCCL) $(BUILD)/import/import_onnx.o $(BUILD)/import/run/yaml.o \
  $(BUILD)/import/json_stream.o $(BUILD)/import/zip.o $(BUILD)/import/import_nsys.o $(BUILD)/serve/cmd_serve.o: $(BUILD)/parts
$(BUILD)/import/import_nsys.o: FILE_FLAGS := $(if $(HAVE_SQLITE),-DDL_HAVE_SQLITE $(SQLITE_CFLAGS))
$(BUILD)/import/json_stream.o $(BUILD)/import/zip.o: FILE_FLAGS := $(if $(HAVE_ZLIB),-DDL_HAVE_ZLIB $(ZLIB_CFLAGS))
$(BUILD)/import/run/yaml.o: FILE_FLAGS := $(if $(HAVE_LIBYAML),-DDL_HAVE_LIBYAML $(LIBYAML_CFLAGS))
$(BUILD)/serve/cmd_serve.o $(BUILD)/tests/unit/test_serve_routes.o: FILE_FLAGS := $(if $(HAVE_MICROHTTPD),-DDL_HAVE_MICROHTTPD)
$(BUILD)/serve/page_data.o: $(wildcard serve/page/*)
# Loaded by the name under which programs of this machine link it.
$(BUILD)/serve/mhd.o: FILE_FLAGS = -DDL_MICROHTTPD='"$(MICROHTTPD_SONAME)"'
$(BUILD)/serve/mhd.o: $(BUILD)/parts
$(ABOUT_OBJECTS): FILE_FLAGS = $(ABOUT)
ifneq ($(ONNX_OBJECT),)
$(BUILD)/import/import_onnx.o: FILE_FLAGS := -DDL_HAVE_PROTOBUF_C -I$(BUILD) $(PROTOBUF_C_CFLAGS)
$(BUILD)/import/import_onnx.o: $(BUILD)/import/onnx.pb-c.h
$(BUILD)/import/onnx.pb-c.h: $(BUILD)/import/onnx.pb-c.c ;
$(BUILD)/import/onnx.pb-c.c: import/onnx.proto
	$(Q)mkdir -p $(@D)
	$(call say,PROTO,$<) $(PROTOC_C) --c_out=$(@D) --proto_path=$(<D) $<
$(ONNX_OBJECT): $(BUILD)/import/onnx.pb-c.c $(BUILD)/flags
	$(call say,CC,$<) $(CC) $(BASE_FLAGS) -w -fmacro-prefix-map=$(BUILD)/= -I$(BUILD) -I$(@D) $(PROTOBUF_C_CFLAGS) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
endif
$(BUILD)/predict/manual/theory_text.c: predict/manual/theory.awk docs/theory.md docs/formulas.md
	$(Q)mkdir -p $(@D)
	$(call say,AWK,$@) awk -f $^ > $@
$(THEORY_OBJECT): $(BUILD)/predict/manual/theory_text.c $(BUILD)/flags
	$(call say,CC,$<) $(CC) $(BASE_FLAGS) $(CPPFLAGS) $(CFLAGS) -c $< -o $@
$(ABOUT_OBJECTS): $(BUILD)/about

$(BUILD)/dlmodel: $(BUILD)/dlmodel.o $(LIBRARY_OBJECTS)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(PROGRAM_LIBS)
$(BUILD)/libdlmodel.a: $(API_OBJECTS)
	$(call say,AR,$@) rm -f $@; $(AR) rcs $@ $^
$(BUILD)/$(SONAME): $(patsubst %.c,$(BUILD)/%.o,$(wildcard library/*.c)) $(BUILD)/libdlmodel.a
	$(call say,LINK,$@) $(CC) $(SHARED_FLAGS) $(if $(SANITIZE),$(LINK_FLAGS)) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) $^ -o $@ $(LIBS)
	$(Q)ln -sfn $(SONAME) $(BUILD)/libdlmodel.so
$(BUILD)/dlmodel.pc: $(BUILD)/about
	$(Q)printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$(LIBDIR)' 'includedir=$${prefix}/include' '' 'Name: dlmodel' \
	  'Description: performance model of distributed deep-learning training' 'Version: $(VERSION)' 'Cflags: -I"$${includedir}"' \
	  'Libs: -L"$${libdir}" -ldlmodel' 'Libs.private: $(strip $(LIBS))' > $@
$(BUILD)/dlmodel-probe-cpu: $(PROBE_CPU) $(PROBE_COMMON) $(MODEL_OBJECTS)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(if $(HAVE_ONEDNN),-ldnnl) $(if $(HAVE_OPENBLAS),$(OPENBLAS_LIBS)) $(LIBS)
$(BUILD)/dlmodel-probe-mpi: $(PROBE_MPI) $(PROBE_COMMON) $(MODEL_OBJECTS)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(MPI_LIBS) -ldl $(LIBS)
$(BUILD)/dlmodel-probe-cuda: $(PROBE_CUDA) $(PROBE_GPU) $(PROBE_COMMON) $(MODEL_OBJECTS)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(CUDA_LIBS) -ldl $(LIBS)
$(BUILD)/dlmodel-probe-cudnn: $(PROBE_CUDNN) $(PROBE_GPU) $(PROBE_COMMON) $(MODEL_OBJECTS)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(CUDNN_LIBS) -ldl $(LIBS)
$(BUILD)/dlmodel-probe-nccl: $(PROBE_NCCL) $(PROBE_GPU) $(PROBE_COMMON) $(MODEL_OBJECTS)
	$(call say,LINK,$@) $(CC) $(LINK_FLAGS) $(LDFLAGS) $^ -o $@ $(NCCL_LIBS) $(if $(HAVE_MPI),$(MPI_LIBS)) -ldl $(LIBS)

# Compiling takes one core and installing waits for the network and the disk: both at once.
define set_up
	$(Q)sh packaging/deps.sh build
	+$(Q)sh packaging/deps.sh $(1) & deps=$$!; $(MAKE) --no-print-directory -j$(JOBS) BUILD=$(BUILD) objects; made=$$?; wait $$deps && exit $$made
endef
# What is compiled alike whatever optional libraries there are.
objects: $(filter-out $(ABOUT_OBJECTS) $(BUILD)/import/import_onnx.o $(ONNX_OBJECT) $(SERVE_OBJECTS),$(LIBRARY_OBJECTS)) $(PROBE_COMMON)

demo: ## set up, build, and do the main job on this machine (a minute)
	$(call set_up,demo)
	+$(Q)$(MAKE) --no-print-directory -j$(JOBS) all
	$(Q)BUILD=$(BUILD) sh tools/demo.sh

plots: all ## the figures of docs/gallery.md, into docs/img
	$(Q)BUILD=$(BUILD) sh tools/figures.sh

# Paths of the installation, each as one word of the shell whatever it contains.
quoted = '$(subst ','\'',$(1))'
into = $(call quoted,$(DESTDIR)$(PREFIX)/$(1))
into_lib = $(call quoted,$(DESTDIR)$(LIBDIR)/$(1))

install: all ## PREFIX and DESTDIR are honoured
	install -d $(call into,bin) $(call into,libexec/dlmodel) $(call into,share/dlmodel/plots) $(call into,share/dlmodel/docs/generalize) \
	  $(call into,share/man/man1) $(call into,share/bash-completion/completions) $(call into,share/zsh/site-functions) \
	  $(call into,include) $(call into_lib,pkgconfig)
	install -m 644 include/dlmodel.h $(call into,include/)
	install -m 644 $(BUILD)/libdlmodel.a $(BUILD)/$(SONAME) $(call into_lib,)
	ln -sfn $(SONAME) $(call into_lib,libdlmodel.so)
	install -m 644 $(BUILD)/dlmodel.pc $(call into_lib,pkgconfig/)
	install -m 755 $(BUILD)/dlmodel $(call into,bin/)
	for p in $(filter-out $(BUILD)/dlmodel,$(PROGRAMS)); do install -m 755 "$$p" $(call into,libexec/dlmodel/) || exit 1; done
	find data -type f ! -name '*.sh' -exec sh -c 'for f; do install -D -m 644 "$$f" "$$0/$$f" || exit 1; done' $(call into,share/dlmodel) {} +
	find slurm/sites slurm/frameworks -type f -name '*.[jpm]*' -exec sh -c 'for f; do install -D -m 644 "$$f" "$$0/$$f" || exit 1; done' $(call into,share/dlmodel) {} +
	install -m 644 plots/*.gp $(call into,share/dlmodel/plots/)
	install -m 644 docs/generalize/source.csv docs/generalize/system.csv docs/generalize/device.csv docs/generalize/framework.csv \
	  $(call into,share/dlmodel/docs/generalize/)
	$(BUILD)/dlmodel help --man > $(call into,share/man/man1/dlmodel.1)
	for c in $$($(BUILD)/dlmodel help | sed -n '/^Commands/,/^$$/s/^  \([a-z]*\) .*/\1/p'); do \
	  $(BUILD)/dlmodel help --man "$$c" > $(call into,share/man/man1)/"dlmodel-$$c.1" || exit 1; done
	$(BUILD)/dlmodel help --completion bash > $(call into,share/bash-completion/completions/dlmodel)
	$(BUILD)/dlmodel help --completion zsh > $(call into,share/zsh/site-functions/_dlmodel)

uninstall: ## removes what install put there
	rm -f $(call into,bin/dlmodel)
	rm -rf $(call into,libexec/dlmodel)
	rm -rf $(call into,share/dlmodel)
	rm -f $(call into,share/man/man1/dlmodel.1)
	rm -f $(call into,share/man/man1)/dlmodel-*.1
	rm -f $(call into,share/bash-completion/completions/dlmodel)
	rm -f $(call into,share/zsh/site-functions/_dlmodel)
	rm -f $(call into,include/dlmodel.h)
	rm -f $(call into_lib,libdlmodel.a)
	rm -f $(call into_lib,libdlmodel.so)
	rm -f $(call into_lib,$(SONAME))
	rm -f $(call into_lib,pkgconfig/dlmodel.pc)

sbom: all ## software bill of materials of this build (SPDX 2.3), into $(BUILD)/dlmodel.spdx.json
	$(Q)VERSION="$(VERSION)" COMMIT="$(COMMIT)" ARCHIVES="$(GSL_ARCHIVES) $(PROTOBUF_C_ARCHIVES) $(LIBYAML_ARCHIVES) $(SQLITE_ARCHIVES) $(ZLIB_ARCHIVES)" sh packaging/sbom.sh $(PROGRAMS) > $(BUILD)/dlmodel.spdx.json
	@printf '%s\n' $(BUILD)/dlmodel.spdx.json

wheel: all ## Python wheel with the program, the library and the data, into $(BUILD)
	$(Q)MAKE="$(MAKE)" BUILD="$(BUILD)" CC="$(CC)" $(PYTHON) packaging/wheel.py "$(BUILD)"

dist: ## source archive of what is committed
	git archive --prefix=dlmodel-$(VERSION)/ -o dlmodel-$(VERSION).tar.gz HEAD

clean: ## removes all build folders
	rm -rf build build-* dlmodel

-include $(LIBRARY_OBJECTS:.o=.d) $(BUILD)/dlmodel.d $(PROBE_COMMON:.o=.d) $(PROBE_CPU:.o=.d) $(PROBE_MPI:.o=.d) $(PROBE_GPU:.o=.d) \
  $(PROBE_CUDA:.o=.d) $(PROBE_CUDNN:.o=.d) $(PROBE_NCCL:.o=.d)
include tests/tests.mk

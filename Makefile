# Berth - a Kubernetes scheduler in C
#
# Variables (make VAR=value ...):
#   BUILD     build folder                                   (build)
#   CC        compiler; gcc 12 and clang 14 are supported    (cc)
#   CCACHE    ccache, before the compiler                    (ccache, where it is installed)
#   OPT       optimisation flags                             (-O2 -g)
#   WERROR    warnings are errors: 1 or empty                (1)
#   SANITIZE  e.g. address,undefined or thread               (empty)
#   V         1 shows the commands                           (empty)
#   CORPUS    folder of recorded decisions for `conformance` (tests/conformance)
#   DESTDIR, PREFIX, SYSCONFDIR, UNITDIR   for install       (/usr/local, /etc)
#   UPFLAGS   flags of `berth up` for `make up`
#   FUZZ, SECONDS   for fuzz
#   SOAK_SECONDS    for soak                                 (1200)
#   FAULT_SECONDS, FAULT_SEED   for faults                   (360, drawn)
#   SEED, COUNT   for wasm-differential, mutants, simulation-mutants
#   SEEDS     for simulation (10000), simulation-mutants (2000)
#   RESULTS   for simulation-mutants: file that a later run goes on with
#   DIR       folder of guests for wasm-guests
#   COVERED, COVERAGE_OF   for coverage: which checks run, and which paths are told line by line
#   RUNS      for doublebook, with FAULT_SEED                (400)
#   PROPERTY_ROUNDS, PROPERTY_FRESH   rounds of the property test in `check`   (1000, 500)
#
# `make help` lists the targets.

BUILD  ?= build
CC     ?= cc
OPT    ?= -O2 -g
WERROR ?= 1
CORPUS ?= tests/conformance
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
UNITDIR ?= $(if $(filter /usr,$(PREFIX)),/lib/systemd/system,$(PREFIX)/lib/systemd/system)
V      ?=
CCACHE := $(if $(findstring ccache,$(CC)),,$(shell command -v ccache))
Q      := $(if $(V),,@)
say     = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:

# ---- what is where -------------------------------------------------------------------------------
# Libraries of common/, highest first: one may use those after it (tools/check-layers.sh proves it).
COMMON := common/control common/feed common/bus common/api common/snapshot common/cel common/k8s common/flags common/data common/http common/wasm common/regex common/base
LIBDIRS := $(COMMON) watcher scheduler binder front simulator cli bench nodemetrics
# scheduler is one library out of several folders.
SUBDIRS_scheduler := engine engine/fast queue daemon decisions framework native wasm config cache preemption extender explain $(patsubst scheduler/%,%,$(wildcard scheduler/plugins scheduler/plugins/*))
SUBDIRS_bench     := perf scale
SUBDIRS_simulator := $(patsubst simulator/%/,%,$(filter-out simulator/web/,$(wildcard simulator/*/)))
PROGRAMS := berth-watcher berth-scheduler berth-binder berth-front berth-simulator berth-bench berth berth-metrics berth-plugin-host
MAIN_berth-watcher   := watcher/main.c
MAIN_berth-scheduler := scheduler/main.c
MAIN_berth-binder    := binder/main.c
MAIN_berth-front     := front/main.c
MAIN_berth-simulator := simulator/main.c
MAIN_berth-bench     := bench/main.c
MAIN_berth           := cli/main.c
MAIN_berth-metrics   := nodemetrics/main.c
MAIN_berth-plugin-host := pluginhost/main.c
LIBS_watcher   := watcher $(COMMON)
LIBS_scheduler := scheduler $(COMMON)
LIBS_binder    := binder $(COMMON)
LIBS_front     := front $(COMMON)
LIBS_simulator := simulator $(LIBS_scheduler)
LIBS_cli       := cli $(LIBS_simulator)
LIBS_bench     := bench $(LIBS_cli)
LIBS_nodemetrics := nodemetrics $(COMMON)
LIBS_pluginhost := $(LIBS_scheduler)

# ---- flags ---------------------------------------------------------------------------------------
PKGS     := libcurl libssl libcrypto libzmq libprotobuf-c yaml-0.1 libuv libmicrohttpd gnutls sqlite3 \
            libnghttp2
WARN     := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith \
            -Wwrite-strings -Wformat=2 -Wundef -Wno-format-nonliteral \
            $(if $(WERROR),-Werror)
HARDEN   := $(if $(SANITIZE),,-D_FORTIFY_SOURCE=2) -fstack-protector-strong -fPIE
CPPFLAGS := -I. -I$(BUILD)/gen -D_GNU_SOURCE $(shell pkg-config --cflags $(PKGS) 2>/dev/null) $(CPPFLAGS)
CFLAGS   := -std=c17 $(OPT) $(WARN) $(HARDEN) -ffp-contract=off -fno-strict-aliasing \
            -fno-omit-frame-pointer -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(CFLAGS)
LDFLAGS  := -pie -Wl,-z,relro,-z,now -pthread $(if $(SANITIZE),-fsanitize=$(SANITIZE)) $(LDFLAGS)
LDLIBS   := $(shell pkg-config --libs $(PKGS) 2>/dev/null) -lhttp_parser -lz -lm -lrt
GENFLAGS := -Wno-unused-parameter -Wno-undef -Wno-shadow -Wno-missing-prototypes

# ---- generated code ------------------------------------------------------------------------------
PROTOS    := $(wildcard proto/*.proto proto/kubernetes/*.proto)
GEN_C     := $(patsubst %.proto,$(BUILD)/gen/%.pb-c.c,$(PROTOS))
PROTO_H   := $(GEN_C:.c=.h)
# Tables that are read at run time: each becomes the text of one string literal, without its comments and empty lines.
DATA_H    := $(patsubst %,$(BUILD)/gen/%.h,$(wildcard cli/*.data $(foreach d,common scheduler simulator,$(d)/*/*.data $(d)/*/*/*.data)) $(wildcard simulator/*/*.css)) \
             $(patsubst cli/completion/%,$(BUILD)/gen/cli/%.h,$(wildcard cli/completion/berth.*)) \
             $(patsubst %,$(BUILD)/gen/common/wasm/%.text.h,trap operations compiled)
GEN_H     := $(PROTO_H) $(DATA_H)
GEN_O     := $(GEN_C:.c=.o)
PROTO_LIB := $(BUILD)/lib/proto.a

$(BUILD)/gen/%.pb-c.c $(BUILD)/gen/%.pb-c.h: %.proto
	$(call say,PROTO,$<)
	@mkdir -p $(dir $@)
	$(Q)protoc-c --proto_path=. --c_out=$(BUILD)/gen $<
$(BUILD)/gen/%.data.h: %.data
	@mkdir -p $(dir $@)
	$(Q)sed -e '/^#/d; /^$$/d' -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< >$@
$(BUILD)/gen/cli/berth.%.h: cli/completion/berth.%
	@mkdir -p $(dir $@)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/\t/\\t/g' -e 's/.*/"&\\n"/' $< >$@
$(BUILD)/gen/%.css.h: %.css
	@mkdir -p $(dir $@)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/.*/"&"/' $< >$@
# Headers that stand in the C of a compiled guest.
$(BUILD)/gen/%.text.h: %.h
	@mkdir -p $(dir $@)
	$(Q)sed -e 's/[\\"]/\\&/g' -e 's/.*/"&\\n"/' $< >$@
$(GEN_O): %.o: %.c $(PROTO_H)
	$(call say,CC,$<)
	$(Q)$(CCACHE) $(CC) $(CPPFLAGS) $(CFLAGS) $(GENFLAGS) -c -o $@ $<
$(PROTO_LIB): $(GEN_O)
	@mkdir -p $(dir $@)
	$(call say,AR,$@)
	$(Q)rm -f $@; $(AR) rcs $@ $^

# ---- libraries -----------------------------------------------------------------------------------
libname = $(BUILD)/lib/$(subst /,_,$(1)).a
srcs    = $(filter-out %/main.c,$(wildcard $(1)/*.c) $(foreach s,$(SUBDIRS_$(1)),$(wildcard $(1)/$(s)/*.c)))
objs    = $(patsubst %.c,$(BUILD)/obj/%.o,$(call srcs,$(1)))

$(BUILD)/obj/%.o: %.c | $(GEN_H)
	$(call say,CC,$<)
	@mkdir -p $(dir $@)
	$(Q)$(CCACHE) $(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

# The list makes an archive anew when a source comes or goes: the object of one that moved would stay in it.
define LIB_RULE
$(call libname,$(1)).list: FORCE
	@mkdir -p $$(dir $$@)
	@printf '%s\n' $(call srcs,$(1)) | cmp -s - $$@ || printf '%s\n' $(call srcs,$(1)) > $$@
$(call libname,$(1)): $(call objs,$(1)) $(call libname,$(1)).list
	$(call say,AR,$$@)
	$(Q)rm -f $$@; $(AR) rcs $$@ $$(filter %.o,$$^)
endef
$(foreach d,$(LIBDIRS),$(eval $(call LIB_RULE,$(d))))

# ---- programs ------------------------------------------------------------------------------------
define PROGRAM_RULE
$(BUILD)/bin/$(1): $(BUILD)/obj/$(MAIN_$(1):.c=.o) $(foreach l,$(LIBS_$(patsubst %/main.c,%,$(MAIN_$(1)))),$(call libname,$(l))) $(PROTO_LIB)
	@mkdir -p $$(dir $$@)
	$(call say,LD,$$@)
	$(Q)$(CC) $(LDFLAGS) -o $$@ $$< -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $(LDLIBS)
endef
$(foreach p,$(PROGRAMS),$(eval $(call PROGRAM_RULE,$(p))))
BUILD_PROGRAMS := $(foreach p,$(PROGRAMS),$(if $(wildcard $(MAIN_$(p))),$(BUILD)/bin/$(p)))

# build/ has the layout of an installation, so that programs find their data the same way
$(BUILD)/share/berth/%: config/%
	@mkdir -p $(dir $@)
	$(Q)cp $< $@

# The page is served from share/berth/web as it is: there is no build step for it. Its reports wear the scenarios' dress.
WEB := $(BUILD)/share/berth/web/report.css $(patsubst simulator/web/%,$(BUILD)/share/berth/web/%,$(wildcard simulator/web/*.html simulator/web/*.css simulator/web/*.js simulator/web/*.svg))
$(BUILD)/share/berth/web/%: simulator/web/%
	@mkdir -p $(dir $@)
	$(Q)cp $< $@
$(BUILD)/share/berth/web/%: simulator/scenario/%
	@mkdir -p $(dir $@)
	$(Q)cp $< $@

# ---- plugins out of tree ------------------------------------------------------------------------
# plugins/<name>/*.c is one shared object, built with the public header alone, as a stranger would.
PLUGINS := $(patsubst plugins/%/,$(BUILD)/plugins/%.so,$(filter-out plugins/include/ plugins/wasm/,$(wildcard plugins/*/)))
PLUGIN_CC = $(CC) -std=c11 $(OPT) $(WARN) -fPIC -fvisibility=hidden -shared -Wl,-z,relro,-z,now,-z,defs -Iplugins/include
define PLUGIN_RULE
$(BUILD)/plugins/$(1).so: $(wildcard plugins/$(1)/*.[ch]) plugins/include/berth/plugin.h
	$(call say,PLUGIN,$$@)
	@mkdir -p $$(dir $$@)
	$(Q)$(PLUGIN_CC) -o $$@ $$(filter %.c,$$^) -lm
endef
$(foreach p,$(PLUGINS),$(eval $(call PLUGIN_RULE,$(patsubst $(BUILD)/plugins/%.so,%,$(p)))))
# One for the tests.
$(BUILD)/tests/plugins/%.so: tests/plugins/%.c plugins/include/berth/plugin.h
	$(call say,PLUGIN,$@)
	@mkdir -p $(dir $@)
	$(Q)$(PLUGIN_CC) -o $@ $<

# plugins/wasm/*.c are guests, each a file of its own; where there is no clang with a linker for them, they are left out.
WASM_CC := $(shell command -v clang-14 clang | head -n1)
WASM_LD := $(shell command -v wasm-ld-14 wasm-ld | head -n1)
GUESTS  := $(if $(and $(WASM_CC),$(WASM_LD)),$(patsubst %.c,$(BUILD)/%.wasm,$(wildcard plugins/wasm/*.c tests/guests/*.c)))
$(BUILD)/%.wasm: %.c plugins/wasm/guest.h
	$(call say,GUEST,$@)
	@mkdir -p $(dir $@)
	$(Q)$(WASM_CC) --target=wasm32 -O2 -Wall -Wextra -Werror -nostdlib -ffreestanding -mbulk-memory -I. -fuse-ld=$(WASM_LD) -Wl,--no-entry,--strip-debug -o $@ $<

$(BUILD)/include/berth/plugin.h: plugins/include/berth/plugin.h
	@mkdir -p $(dir $@)
	$(Q)cp $< $@

$(BUILD)/include/berth/guest.h: plugins/wasm/guest.h
	@mkdir -p $(dir $@)
	$(Q)cp $< $@

# What `berth plugin new` begins with: the package berth-dev.
PLUGIN_NEW := $(patsubst config/%,$(BUILD)/share/berth/%,$(wildcard config/plugin/*)) $(BUILD)/share/berth/plugin/berth.rs
$(BUILD)/share/berth/plugin/berth.rs: tools/rust-header.awk plugins/include/berth/plugin.h
	@mkdir -p $(dir $@)
	$(Q)awk -f $^ >$@

all: $(BUILD_PROGRAMS) $(PLUGINS) $(GUESTS) $(BUILD)/include/berth/plugin.h $(BUILD)/include/berth/guest.h $(PLUGIN_NEW) $(BUILD)/share/berth/example-cluster.yaml $(WEB) ## build every program into build/bin

# ---- unit tests: tests/unit/<folder>/test_x.c links the folder's library and what it may use ------

# A library of common/ with those after it; a room as its program. The binder's API server is the
# simulator's: it can cut a connection.
unit_libs  = $(or $(LIBS_$(1)),$(shell echo '$(COMMON)' | grep -o '$(1) .*\|$(1)$$')) $(if $(filter binder,$(1)),$(LIBS_simulator))
UNIT_SRC  := $(sort $(shell find tests/unit -name 'test_*.c' 2>/dev/null))
UNIT_BIN  := $(patsubst tests/unit/%.c,$(BUILD)/tests/%,$(UNIT_SRC))
# More than two hundred programs are linked whenever a library changes: lld takes half of ld's time.
TEST_LD   := $(if $(shell command -v ld.lld),-fuse-ld=lld)
unit_room  = $(firstword $(foreach k,$(LIBDIRS),$(if $(findstring tests/unit/$(k)/,$(1)),$(k))))

define UNIT_RULE
$(BUILD)/tests/$(patsubst tests/unit/%.c,%,$(1)): $(BUILD)/obj/$(1:.c=.o) $(BUILD)/obj/tests/unit/harness.o $(foreach l,$(call unit_libs,$(call unit_room,$(1))),$(call libname,$(l))) $(PROTO_LIB)
	@mkdir -p $$(dir $$@)
	$(call say,LD,$$@)
	$(Q)$(CC) $$(LDFLAGS) $(TEST_LD) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group $(LDLIBS) -lcunit -ljansson
endef
$(foreach t,$(UNIT_SRC),$(eval $(call UNIT_RULE,$(t))))

unit-tests: $(UNIT_BIN) $(PLUGINS) $(GUESTS) $(BUILD)/tests/plugins/strange.so $(BUILD)/tests/plugins/crashes.so $(BUILD)/tests/plugins/apart.so $(BUILD)/tests/plugins/evicts.so ## build the unit tests

-include $(shell find $(BUILD)/obj $(BUILD)/tests -name '*.d' 2>/dev/null)
include tools/targets.mk

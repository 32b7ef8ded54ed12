# Targets a person calls. Included by the Makefile, which holds the build rules.

help: ## this list
	@awk '/^#/ {sub(/^# ?/, ""); print; next} {exit}' Makefile
	@grep -hE '^[a-z0-9_-]+:.*##' Makefile tools/targets.mk | sed 's/:.*##/\t/' | sort | awk -F'\t' '{printf "  %-16s %s\n", $$1, $$2}'

deps: ## install what building needs (Debian packages)
	@bash tools/deps.sh build
deps-test: ## install what `make check` needs as well
	@bash tools/deps.sh test
deps-dev: ## install linters, sanitizer runtimes, fuzzers
	@bash tools/deps.sh dev

man: all ## manual pages, into build/man (needs help2man)
	@command -v help2man >/dev/null || { echo "make man: help2man is missing (apt-get install help2man)" >&2; exit 1; }
	@bash tools/man.sh $(BUILD)/bin $(BUILD)/man && echo "$(BUILD)/man: $$(ls $(BUILD)/man | wc -l) pages"

up: deps ## build, then run Berth with the built-in API server (Ctrl-C stops it)
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@exec $(BUILD)/bin/berth up $(UPFLAGS)

# The list of test programs: name, p(arallel) or s(erial), command.
FUZZ_SRC  := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_NAME := $(patsubst tests/fuzz/fuzz_%.c,%,$(FUZZ_SRC))
INTEGRATION := $(sort $(filter-out %-live.sh,$(wildcard tests/integration/*.sh)))
# Programs that the integration tests play against.
INTEGRATION_BIN := $(patsubst tests/integration/%.c,$(BUILD)/tests/integration/%,$(wildcard tests/integration/*.c))
$(BUILD)/tests/integration/%: tests/integration/%.c $(foreach l,$(COMMON),$(call libname,$(l))) $(PROTO_LIB) | $(GEN_H)
	@mkdir -p $(dir $@)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS)
FUZZ_REPLAY := $(foreach f,$(FUZZ_NAME),$(BUILD)/tests/fuzz/$(f))
FUZZ_LIBS := $(foreach l,simulator watcher scheduler binder front nodemetrics $(COMMON),$(call libname,$(l)))

$(BUILD)/tests/fuzz/%: tests/fuzz/fuzz_%.c tests/fuzz/replay.c $(FUZZ_LIBS) $(PROTO_LIB) | $(GEN_H)
	@mkdir -p $(dir $@)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS)

# Random scenarios (tests/property): a fixed set of seeds and a few nobody has seen yet.
PROPERTY_ROUNDS ?= 1000
PROPERTY_FRESH  ?= 500
PROPERTY_SRC  := $(wildcard tests/property/*.c)
PROPERTY_OBJ  := $(patsubst %.c,$(BUILD)/obj/%.o,$(PROPERTY_SRC))
PROPERTY_BIN  := $(if $(PROPERTY_SRC),$(BUILD)/tests/property/property)
PROPERTY_CASE := $(sort $(wildcard tests/property/cases/*.yaml))
$(BUILD)/tests/property/property: $(PROPERTY_OBJ) $(foreach l,$(LIBS_simulator),$(call libname,$(l))) $(PROTO_LIB)
	@mkdir -p $(dir $@)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $(PROPERTY_OBJ) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS)

# Everything together in made-up time (tests/simulation). Its own clock, bus, API client and HTTP come before the libraries'.
# Seeds of `check`, and of `make simulation`.
SIMULATION_SEEDS ?= 2000
SEEDS           ?= 10000
SIMULATION_BIN  := $(BUILD)/bin/berth-simulation
SIMULATION_OBJ  := $(patsubst %.c,$(BUILD)/obj/%.o,$(wildcard tests/simulation/*.c))
SIMULATION_CASE := $(sort $(wildcard tests/simulation/cases/*))
SIMULATION_WRAP := bh_read_file bh_signals_new bh_signals_close bh_log_write getrandom gethostname shm_open flock fcntl close bh_reserve_file bh_snap_writer_new bh_snap_follow
# Programs may call different things by one name, and here are three in one: watcher and binder keep theirs to themselves.
$(BUILD)/obj/tests/simulation/lib_%.o: $(BUILD)/lib/%.a
	@mkdir -p $(dir $@)
	$(Q)$(LD) -r -o $@.all --whole-archive $< && objcopy -w --keep-global-symbol='bh_$*_*' $@.all $@
$(SIMULATION_BIN): $(SIMULATION_OBJ) $(BUILD)/obj/tests/simulation/lib_watcher.o $(BUILD)/obj/tests/simulation/lib_binder.o $(foreach l,$(LIBS_simulator),$(call libname,$(l))) $(PROTO_LIB)
	@mkdir -p $(dir $@)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(foreach w,$(SIMULATION_WRAP),-Wl,--wrap=$(w)) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS)

$(BUILD)/checks: FORCE
	@mkdir -p $(BUILD)
	@{ printf 'layers\tp\tbash tools/check-layers.sh\n'; \
	   printf 'map\tp\tbash tools/check-map.sh\n'; \
	   $(if $(SANITIZE),,printf 'globals\tp\tbash tools/check-globals.sh $(BUILD)\n';) \
	   printf 'unused\tp\tbash tools/unused.sh $(BUILD)\n'; \
	   printf 'format\tp\t$(MAKE) --no-print-directory format-check\n'; \
	   $(foreach t,$(UNIT_BIN),printf 'unit/%s\tp\t%s\n' '$(patsubst $(BUILD)/tests/%,%,$(t))' '$(t)';) \
	   $(foreach f,$(FUZZ_NAME),printf 'fuzz/%s\tp\t%s tests/fuzz/corpus/%s\n' '$(f)' '$(BUILD)/tests/fuzz/$(f)' '$(f)';) \
	   $(if $(PROPERTY_BIN),printf 'property/fixed\tp\t%s --seed 1 --rounds %s %s\n' '$(PROPERTY_BIN)' '$(PROPERTY_ROUNDS)' '$(PROPERTY_CASE)';) \
	   $(if $(PROPERTY_BIN),printf 'property/fresh\tp\t%s --no-wake --rounds %s\n' '$(PROPERTY_BIN)' '$(PROPERTY_FRESH)';) \
	   printf 'faults/checker\tp\tpython3 tests/faults/test_check.py\n'; \
	   printf 'soak/steady\tp\tpython3 tests/soak/test_load.py\n'; \
	   $(if $(SANITIZE),,printf 'simulation/seeds\tp\t%s --first 1 --seeds %s --jobs 2 --reach-all\n' '$(SIMULATION_BIN)' '$(SIMULATION_SEEDS)';) \
	   $(if $(SANITIZE),,printf 'simulation/same\tp\tbash tests/simulation/same.sh %s\n' '$(SIMULATION_BIN)';) \
	   $(if $(SANITIZE)$(if $(SIMULATION_CASE),,none),,printf 'simulation/cases\tp\t%s %s\n' '$(SIMULATION_BIN)' '$(SIMULATION_CASE)';) \
	   $(if $(wildcard tests/conformance/*),printf 'conformance\tp\t$(BUILD)/bin/berth conformance --through-record tests/conformance\n';) \
	   printf 'conformance/community\tp\tpython3 tests/conformance/community/run.py --bin $(BUILD)/bin\n'; \
	   printf 'conformance/community-apart\tp\tpython3 tests/conformance/community/run.py --bin $(BUILD)/bin --apart --first 4\n'; \
	   $(foreach s,$(INTEGRATION),printf 'integration/%s\tp\tBERTH_BIN=%s bash %s\n' '$(basename $(notdir $(s)))' '$(BUILD)/bin' '$(s)';) \
	 } > $@

check: deps-test ## install, build and test everything (the README's test command)
	@bash tools/axe.sh $(BUILD)/axe.min.js
	@$(MAKE) --no-print-directory -j$$(nproc) all unit-tests fuzz-replay property integration-programs simulation-program
	@$(MAKE) --no-print-directory $(BUILD)/checks
	@bash tools/run-checks.sh $(BUILD)/check-logs < $(BUILD)/checks

integration-programs: $(INTEGRATION_BIN) ## programs that the integration tests play against

check-unit: unit-tests ## unit tests only
	@$(MAKE) --no-print-directory $(BUILD)/checks
	@grep -P '^(unit/|layers|map|globals|unused|format)' $(BUILD)/checks | bash tools/run-checks.sh $(BUILD)/check-logs

fuzz-replay: $(FUZZ_REPLAY) ## fuzz targets linked to replay their corpus without an engine
property: $(PROPERTY_BIN) ## build the random property test (build/tests/property/property --help)
soak: ## everything random at length: make soak SOAK_SECONDS=1200
	@$(MAKE) --no-print-directory -j$$(nproc) all property
	@bash tools/soak.sh $(BUILD) $(or $(SOAK_SECONDS),1200)

faults: ## kills, stops, cuts and errors under load, with a checker: make faults FAULT_SECONDS=360 FAULT_SEED=1
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@python3 tests/faults/answers.py --bin $(BUILD)/bin
	@python3 tests/faults/run.py --bin $(BUILD)/bin --seconds $(or $(FAULT_SECONDS),360) $(if $(FAULT_SEED),--seed $(FAULT_SEED))

simulation-program: $(SIMULATION_BIN)
simulation: ## the whole pipeline from seeds, in made-up time: make simulation SEEDS=100000
	@$(MAKE) --no-print-directory -j$$(nproc) simulation-program
	@$(SIMULATION_BIN) --first 1 --seeds $(SEEDS) --jobs $$(nproc)
simulation-mutants: unit-tests simulation-program ## change a line at random, ask the folder's unit tests and the simulation: make simulation-mutants COUNT=300 SEEDS=2000; goes on with RESULTS
	@python3 tests/mutants.py --simulation --seed $(or $(SEED),1) --count $(or $(COUNT),300) --seeds $(if $(filter file,$(origin SEEDS)),$(SIMULATION_SEEDS),$(SEEDS)) --results $(or $(RESULTS),$(BUILD)/simulation-mutants.jsonl) $(WHERE)
simulation-planted: ## does the simulation find bugs that are planted?
	@bash tests/simulation/planted.sh

wasm-differential: ## random WebAssembly modules, here and in node or wabt: make wasm-differential SEED=1 COUNT=2000
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/bin/berth
	@python3 tests/wasm/differential.py --bin $(BUILD)/bin --count $(or $(COUNT),200) $(if $(SEED),--seed $(SEED))

wasm-guests: ## a folder of foreign guests, each in a small cluster: make wasm-guests DIR=/path
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/bin/berth
	@python3 tests/wasm/guests.py --bin $(BUILD)/bin $(DIR)

doublebook: ## kills while bindings are on the wire: is a node booked twice? make doublebook RUNS=400
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@python3 tests/faults/doublebook.py --bin $(BUILD)/bin --runs $(or $(RUNS),400) $(if $(FAULT_SEED),--seed $(FAULT_SEED))

conformance: ## replay recorded decisions: make conformance CORPUS=DIR
	@$(MAKE) --no-print-directory -j$$(nproc) $(BUILD)/bin/berth
	@$(BUILD)/bin/berth conformance $(CORPUS)

conformance-gang: ## scenarios of groups of pods against `berth up`: make conformance-gang ONLY=TEXT
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@python3 tests/conformance/gang/run.py --bin $(BUILD)/bin $(if $(ONLY),--only "$(ONLY)")

# What takes longer than `check` may: a list of its own, out of two more builds.
DEEP_SAN    := SANITIZE=address,undefined CC=clang-14
DEEP_THREAD := SANITIZE=thread WERROR=
$(BUILD)/tests/common/snapshot/test_threads: LDFLAGS += -Wl,--wrap=mmap,--wrap=munmap,--wrap=pread,--wrap=pwrite
# Rooms that start threads, and what they are tested with.
THREADED    := unit/(common/|scheduler/(decisions|daemon)|simulator/(server|console|replay))
asan-build:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-asan $(DEEP_SAN) OPT="-O1 -g" -j$$(nproc) all unit-tests fuzz-replay property simulation-program
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-asan PROPERTY_ROUNDS=200 PROPERTY_FRESH=100 $(BUILD)-asan/checks
tsan-build:
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-tsan $(DEEP_THREAD) OPT="-O1 -g" -j$$(nproc) unit-tests
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-tsan $(BUILD)-tsan/checks
$(BUILD)/checks-asan: asan-build
	@grep -P '^(unit/|fuzz/|property/)' $(BUILD)-asan/checks | sed 's|^|asan/|' > $@
$(BUILD)/checks-tsan: tsan-build
	@grep -P '^$(THREADED)' $(BUILD)-tsan/checks | sed 's|\t\([^\t]*\)$$|\tTSAN_OPTIONS=ignore_noninstrumented_modules=1 \1|; s|^|tsan/|' > $@
DEEP_RUN = BERTH_TEST_LONG=1 BERTH_TEST_LIMIT=1800 BH_TEST_TIMEOUT=900 bash tools/run-checks.sh
asan: deps-dev $(BUILD)/checks-asan ## clang: unit tests, property test and fuzz corpora under AddressSanitizer and UBSan
	@$(DEEP_RUN) $(BUILD)-asan/check-logs < $(BUILD)/checks-asan
tsan: deps-dev $(BUILD)/checks-tsan ## unit tests of every room with threads under ThreadSanitizer
	@$(DEEP_RUN) $(BUILD)-tsan/check-logs < $(BUILD)/checks-tsan
check-deep: deps-dev all simulation-program $(BUILD)/checks-asan $(BUILD)/checks-tsan ## asan, tsan, seeds under asan, WebAssembly in two engines, the plugins' ABI, the package under a live systemd, and clang-tidy on what changed (TIDY_BASE=REVISION)
	@{ printf 'tidy\tp\tbash tools/tidy.sh %s\n' '$(TIDY_BASE)'; printf 'wasm/differential\tp\tpython3 tests/wasm/differential.py --bin $(BUILD)/bin\n'; printf 'simulation/asan\tp\tbash tests/simulation/same.sh %s %s\n' '$(SIMULATION_BIN)' '$(BUILD)-asan/bin/berth-simulation'; printf 'abi\tp\tbash tests/abi/abi.sh\n'; printf 'systemd/live\tp\t$(MAKE) --no-print-directory systemd-live\n'; cat $(BUILD)/checks-asan $(BUILD)/checks-tsan; } > $(BUILD)/checks-deep
	@$(DEEP_RUN) $(BUILD)/check-deep-logs < $(BUILD)/checks-deep
systemd-live: deb all ## the package under a systemd of its own, in a container: killed, stopped, upgraded, purged (root)
	@BERTH_BIN=$(BUILD)/bin bash tests/integration/systemd-live.sh
valgrind: unit-tests ## unit tests of common/ and scheduler/queue under valgrind
	@$(MAKE) --no-print-directory $(BUILD)/checks
	@grep -P '^unit/(common/(base|data|flags|k8s)|scheduler/queue)' $(BUILD)/checks | sed 's|\t$(BUILD)|\tBH_TEST_TIMEOUT=600 valgrind -q --error-exitcode=9 --leak-check=full $(BUILD)|' | bash tools/run-checks.sh $(BUILD)/valgrind-logs
fuzz: ## fuzz one target for a while: make fuzz FUZZ=json SECONDS=60 (clang)
	@test -n "$(FUZZ)" || { echo "say which: make fuzz FUZZ=<$(subst $(eval) ,|,$(FUZZ_NAME))>"; exit 2; }
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-fuzz CC=clang SANITIZE=fuzzer-no-link,address,undefined OPT="-O1 -g" WERROR= -j$$(nproc) $(BUILD)-fuzz/fuzz/$(FUZZ)
	@mkdir -p $(BUILD)-fuzz/corpus/$(FUZZ)
	$(BUILD)-fuzz/fuzz/$(FUZZ) -max_total_time=$(or $(SECONDS),60) -timeout=5 -rss_limit_mb=2048 $(BUILD)-fuzz/corpus/$(FUZZ) tests/fuzz/corpus/$(FUZZ)
$(BUILD)/fuzz/%: tests/fuzz/fuzz_%.c $(FUZZ_LIBS) $(PROTO_LIB) | $(GEN_H)
	@mkdir -p $(dir $@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -fsanitize=fuzzer -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS)

lint: deps-dev ## clang build, layers, clang-tidy (.clang-tidy), shellcheck
	@bash tools/check-layers.sh
	@$(MAKE) --no-print-directory BUILD=$(BUILD)-clang CC=clang-14 -j$$(nproc) all unit-tests
	@shellcheck -x -S warning tools/*.sh tools/pre-commit tests/integration/*.sh .ci/run
	@bash tools/tidy.sh --all
format: ## clang-format every source
	@git ls-files '*.c' '*.h' | xargs clang-format-14 -i
format-check: ## does every source look as clang-format leaves it? (part of check)
	@bad=$$(git ls-files -co --exclude-standard '*.c' '*.h' | xargs clang-format-14 --dry-run 2>&1 | sed -n 's/: warning: .*//p' | head -20); \
	 if [ -z "$$bad" ]; then echo "1 passed, 0 failed, 0 skipped"; \
	 else echo "not ok - not as 'make format' leaves it:"; echo "$$bad" | sed 's/^/    /'; echo "0 passed, 1 failed, 0 skipped"; exit 1; fi
sizes: ## lines of product C by room; longest files and functions
	@bash tools/sizes.sh
unused: all ## external functions that no other file, or only tests, call
	@bash tools/unused.sh $(BUILD)
compdb: ## compile_commands.json for editors and clang-tidy
	@$(MAKE) --no-print-directory -Bnk V=1 all unit-tests 2>/dev/null | bash tools/compdb.sh > compile_commands.json.new
	@mv compile_commands.json.new compile_commands.json

BENCH_SRC := $(wildcard bench/count/*_bench.c)
BENCH_BIN := $(patsubst bench/count/%.c,$(BUILD)/bench/%,$(BENCH_SRC))
$(BUILD)/bench/%: bench/count/%.c $(foreach l,$(LIBS_simulator),$(call libname,$(l))) $(PROTO_LIB) | $(GEN_H)
	@mkdir -p $(dir $@)
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LDLIBS)
bench-programs: ## build what `make bench` and `make bench-time` run
	@$(MAKE) --no-print-directory -j$$(nproc) all $(BENCH_BIN)
bench: deps-dev ## instructions and allocations against bench/baseline.tsv: what moved (BENCHFLAGS="--only decide/")
	@$(MAKE) --no-print-directory bench-programs
	@bash bench/run.sh $(BUILD) $(BENCHFLAGS)
bench-accept: deps-dev ## ... and make them the new baseline
	@$(MAKE) --no-print-directory bench-programs
	@bash bench/run.sh $(BUILD) --accept
bench-time: deps ## times: the engine, the queue, the snapshot, and the whole pipeline at 5,000 nodes
	@$(MAKE) --no-print-directory bench-programs
	@for b in $(BENCH_BIN); do echo "== $$(basename $$b)"; $$b || exit 1; done
	@$(BUILD)/bin/berth bench perf bench/workloads/performance-config.yaml --labels pipeline --mode pipeline -o wide

# Three packages' contents: what runs, what plugins are built with, plugins (debian/rules has each in a package of its own).
install: install-core install-dev install-plugins ## install below DESTDIR and PREFIX
install-dev: all
	install -D -m 644 plugins/include/berth/plugin.h $(DESTDIR)$(PREFIX)/include/berth/plugin.h
	install -m 644 plugins/wasm/guest.h $(DESTDIR)$(PREFIX)/include/berth/guest.h
	install -d $(DESTDIR)$(PREFIX)/share/berth/plugin $(DESTDIR)$(PREFIX)/share/pkgconfig
	install -m 644 $(filter-out %.pc.in,$(PLUGIN_NEW)) $(DESTDIR)$(PREFIX)/share/berth/plugin/
	sed "s|@PREFIX@|$(PREFIX)|; s|@ABI@|$$(awk '/^#define BERTH_ABI_M/ { v = v (v == "" ? "" : ".") $$3 } END { print v }' plugins/include/berth/plugin.h)|" \
	    config/plugin/berth-plugin.pc.in >$(DESTDIR)$(PREFIX)/share/pkgconfig/berth-plugin.pc
install-plugins: all
	install -d $(DESTDIR)$(PREFIX)/lib/berth/plugins
	install -m 644 $(PLUGINS) $(DESTDIR)$(PREFIX)/lib/berth/plugins/
install-core: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/sbin $(DESTDIR)$(PREFIX)/libexec/berth $(DESTDIR)$(PREFIX)/share/berth/web $(DESTDIR)$(PREFIX)/share/berth/scenarios $(DESTDIR)$(PREFIX)/share/doc/berth $(DESTDIR)$(UNITDIR) $(DESTDIR)$(PREFIX)/lib/tmpfiles.d $(DESTDIR)$(PREFIX)/lib/sysusers.d $(DESTDIR)$(SYSCONFDIR)/berth
	install -m 755 $(BUILD)/bin/berth $(BUILD)/bin/berth-bench $(DESTDIR)$(PREFIX)/bin/
	ln -sf berth $(DESTDIR)$(PREFIX)/bin/kubectl-berth
	install -D -m 644 cli/completion/berth.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/berth
	install -D -m 644 cli/completion/berth.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/berth.fish
	install -D -m 644 cli/completion/berth.zsh $(DESTDIR)$(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)/_berth
	for p in watcher scheduler binder front metrics simulator; do ln -sf berth $(DESTDIR)$(PREFIX)/share/bash-completion/completions/berth-$$p; ln -sf berth.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/berth-$$p.fish; done
	install -m 755 $(foreach p,watcher scheduler binder front simulator metrics,$(BUILD)/bin/berth-$(p)) $(DESTDIR)$(PREFIX)/sbin/
	install -m 755 systemd/restart-pause $(BUILD)/bin/berth-plugin-host $(DESTDIR)$(PREFIX)/libexec/berth/
	install -m 644 config/example-cluster.yaml config/coscheduling.yaml config/coscheduling-crd.yaml config/rbac.yaml config/rbac-observe.yaml config/kube-scheduler.yaml config/grafana-dashboard.json config/prometheus-rules.yaml $(DESTDIR)$(PREFIX)/share/berth/
	install -m 644 config/scenarios/*.yaml $(DESTDIR)$(PREFIX)/share/berth/scenarios/
	install -m 644 $(WEB) $(DESTDIR)$(PREFIX)/share/berth/web/
	install -m 644 README.md ARCHITECTURE.md systemd/berth-scheduler-extenders.conf systemd/berth-scheduler-binders.conf $(DESTDIR)$(PREFIX)/share/doc/berth/
	for u in systemd/*.service systemd/*.target; do sed 's|@sbindir@|$(PREFIX)/sbin|g; s|@libexecdir@|$(PREFIX)/libexec/berth|g' $$u > $(DESTDIR)$(UNITDIR)/$$(basename $$u); chmod 644 $(DESTDIR)$(UNITDIR)/$$(basename $$u); done
	install -m 644 systemd/berth.tmpfiles $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/berth.conf
	install -m 644 systemd/berth.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/berth.conf
	test -e $(DESTDIR)$(SYSCONFDIR)/berth/scheduler.yaml || install -m 644 config/scheduler.yaml $(DESTDIR)$(SYSCONFDIR)/berth/

# Counters of what tests reach, in a build of its own. COVERED: which of the checks run; `^unit/` is the quick half.
COVERED ?= ^(unit|fuzz|conformance|simulation|integration)
COVERAGE_BUILD := BUILD=$(BUILD)/coverage OPT="-O0 -g0 --coverage -fprofile-update=prefer-atomic" HARDEN=-fPIE WERROR=
coverage: deps-dev ## what tests reach, a line a room, against bars: make coverage COVERED='^unit/' COVERAGE_OF=watcher
	@LDFLAGS="--coverage -Wl,-u,__gcov_dump" $(MAKE) --no-print-directory $(COVERAGE_BUILD) -j$$(nproc) all unit-tests fuzz-replay integration-programs simulation-program
	@$(MAKE) --no-print-directory $(COVERAGE_BUILD) $(BUILD)/coverage/checks
	@find $(BUILD)/coverage -name '*.gcda' -delete
	@grep -P '$(COVERED)' $(BUILD)/coverage/checks | bash tools/run-checks.sh $(BUILD)/coverage/check-logs; rc=$$?; \
	 bash tools/coverage.sh $(BUILD)/coverage $(COVERAGE_OF) && exit $$rc

planted: unit-tests ## do the unit tests find bugs that are planted, one a room?
	@bash tests/planted.sh
mutants: unit-tests ## change a line at random, ask the folder's unit tests (SEED, COUNT, WHERE)
	@python3 tests/mutants.py --seed $(or $(SEED),1) --count $(or $(COUNT),200) $(WHERE)

krew: all ## pack build/krew for `kubectl krew` (KREW_URI: where the archive will be downloaded from)
	@bash tools/krew.sh $(BUILD) $(BUILD)/krew $(or $(KREW_URI),https://berth.example.org/releases)

deb: deps-dev ## build Debian packages into build/deb (with lintian's opinion)
	@bash tools/deb.sh $(BUILD)/deb

clean: ## remove the build folders
	rm -rf $(BUILD) $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz $(BUILD)-clang

FORCE:
.PHONY: all man coverage wasm-differential wasm-guests simulation simulation-program simulation-planted simulation-mutants integration-programs help deps deps-test deps-dev up check check-unit check-deep fuzz-replay property soak faults doublebook conformance conformance-gang asan asan-build tsan tsan-build valgrind systemd-live fuzz lint format format-check sizes unused compdb bench bench-programs bench-accept bench-time install install-core install-dev install-plugins krew mutants planted deb clean unit-tests FORCE

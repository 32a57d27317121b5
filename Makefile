# What it takes: Linux x86_64, Go 1.26, Python 3, make and git.
# Everything fetched or built stays in bin/, .run/ and .tools/ of the checkout.

TOOLS       := $(CURDIR)/.tools/bin
# Named by version, so that a new pin installs and an old one is never taken for it.
STATICCHECK := $(TOOLS)/v0.8.2/staticcheck
BUF         := $(TOOLS)/v1.75.0/buf
PROTOC_GO   := $(TOOLS)/v1.36.12/protoc-gen-go

# The usual checks, and each package and exported name documented in the usual form.
CHECKS := inherit,ST1000,ST1016,ST1020,ST1021,ST1022

# The race detector needs a C compiler. Where there is none, zig is one, and comes from PyPI.
NEED_CC := command -v $${CC:-gcc} >/dev/null || { zig=$$(.ci/pypi ziglang 0.15.2)/ziglang/zig || exit 1; \
	export CGO_ENABLED=1 CC="$$zig cc" ZIG_GLOBAL_CACHE_DIR=$(CURDIR)/.tools/zig-cache; }

.DEFAULT_GOAL := help
.PHONY: help build test lint envoys demo tail bench-policy bench-real knee lessons targets errors proto bench fuzz test-vllm clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## bin/weir and bin/weirlab
	go build -trimpath -o bin/ ./cmd/weir ./cmd/weirlab

test: lint envoys ## vet, lint, and every test: unit, fuzz seeds, real Envoy, race detector on (TESTFLAGS=-v)
	@$(NEED_CC); go test -race $(TESTFLAGS) $$(go list ./... | grep -v '/envoy$$\|/cmd/') && \
	go test ./pkg/gate -run Agrees $(TESTFLAGS) -args -gate.events=1000000 && \
	$(MAKE) --no-print-directory fuzz && \
	go test -race -count=1 -parallel 6 $(TESTFLAGS) ./envoy ./cmd/...    # a pass from the cache has seen no Envoy; most tests wait

test-vllm: build ## weir's estimates against a real vLLM on the CPU (7 GB of memory, 5 minutes; first 6 GB into .tools/; RECORD=1 writes testdata of pkg/scrape and pkg/prompt)
	@python=$$(envoy/vllm/get.sh) && go test -tags vllm -count=1 -timeout 30m $(or $(TESTFLAGS),-v) ./envoy/vllm -args -python "$$python" $(if $(RECORD),-record)

fuzz: ## bodies, content-encodings and streams of messages, FUZZTIME each (10s; 10m after a change there)
	go test ./pkg/prompt -run '^$$' -fuzz '^FuzzParse$$' -fuzztime $(or $(FUZZTIME),10s) -fuzzminimizetime 1s
	go test ./pkg/unpack -run '^$$' -fuzz '^FuzzBody$$' -fuzztime $(or $(FUZZTIME),10s) -fuzzminimizetime 1s
	go test ./pkg/extproc -run '^$$' -fuzz '^FuzzStream$$' -fuzztime $(or $(FUZZTIME),10s) -fuzzminimizetime 1s

lint: $(STATICCHECK) ## go vet, staticcheck, gofmt
	go vet ./...
	go vet -tags vllm ./envoy/vllm
	$(STATICCHECK) -checks $(CHECKS) ./...
	$(STATICCHECK) -tags vllm -checks $(CHECKS) ./envoy/vllm
	@bad=$$(gofmt -l $$(go list -f '{{.Dir}}' ./...)) && { [ -z "$$bad" ] || { echo "gofmt needed: $$bad"; exit 1; }; }

envoys: ## fetch the Envoys that the tests use into .tools/
	@for version in $$(cat envoy/versions); do envoy/get.sh $$version >/dev/null || exit 1; done

demo: build ## the same load without weir and with it, one table (KEEP=1 stays up; MODE=streamed)
	@envoy=$$(envoy/get.sh) && exec bin/weirlab demo -envoy "$$envoy" $(if $(KEEP),-keep) $(if $(MODE),-mode $(MODE))

tail: build ## who waits for whom: first come against classes and deadlines, two tables (under 4 minutes)
	@envoy=$$(envoy/get.sh) && exec bin/weirlab tail -envoy "$$envoy"

bench-policy: build ## weir and every published rule in virtual time: README's table (FULL=1; with TRACES=DIR docs/policies.md too)
	bin/weirlab bench-policy -readme README.md $(if $(FULL),-full $(if $(TRACES),-doc docs/policies.md)) $(if $(TRACES),-traces '$(TRACES)')

targets: build ## what weir is to reach and what it reaches, in virtual time: docs/targets.md (5 to 15 minutes; TRACES=DIR for W4)
	bin/weirlab targets -doc docs/targets.md $(if $(TRACES),-traces '$(TRACES)')

errors: build ## how far weir's predictions are off, in virtual time: docs/errors.md (10 seconds)
	bin/weirlab errors -doc docs/errors.md

bench-real: build ## virtual time against Envoy + weir in real time: docs/realtime.md (15 minutes, alone on the machine)
	@envoy=$$(envoy/get.sh) && exec bin/weirlab agree -envoy "$$envoy" -doc docs/realtime.md

knee: build ## the gate and the knee beside what others do, and beside fixed knees: docs/knee.md (under 8 minutes)
	bin/weirlab knee -doc docs/knee.md

lessons: build ## six lessons, measured: docs/lessons.md and its plots
	bin/weirlab lessons -docs docs

proto: $(BUF) $(PROTOC_GO) ## generate the Go code of proto/weir/v1, which is committed
	$(BUF) generate proto --template '{"version": "v2", "plugins": [{"local": "$(PROTOC_GO)", "out": "proto", "opt": ["paths=source_relative"]}]}'

bench: ## benchmarks with allocations
	go test -run '^$$' -bench . -benchmem ./...

clean: ## remove bin/, .run/ and .tools/
	rm -rf bin .run .tools

$(STATICCHECK):
	@echo "installing staticcheck into .tools/ (about 30 s)"
	@GOBIN=$(@D) go install honnef.co/go/tools/cmd/staticcheck@v0.8.2

$(BUF):
	@echo "installing buf into .tools/ (about 70 s)"
	@GOBIN=$(@D) go install github.com/bufbuild/buf/cmd/buf@v1.75.0

$(PROTOC_GO):
	@GOBIN=$(@D) go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.36.12

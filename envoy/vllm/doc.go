// Package vllm is a test of weir against a real vLLM, behind a real Envoy: what weir predicts of each request and shows of
// each replica, beside what vLLM counts and answers. It takes gigabytes and minutes, so it is no part of make test:
//
//	make test-vllm             run it, and print a table of prediction errors
//	make test-vllm RECORD=1    and write what vLLM told into the testdata of pkg/scrape and pkg/prompt
//
// Before that it asks vLLM's converters, without a model, which bodies are one prompt and which are not (rendered.py).
//
// vLLM runs on the CPU (get.sh) with a model of random weights that model.py makes. It is vLLM's own scheduler, prefix
// cache, counters and HTTP, so what is counted must agree exactly, and estimates within what follows from their blocks.
// Its pace is that of no GPU: no time is compared but with another of the same run.
package vllm

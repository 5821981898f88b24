inferstat_script_test(worker.gpu_check test_gpu_check.sh LABELS worker)
# The worker's own behaviour, and what a collector has of it.
inferstat_script_test(worker.cli worker_cli.sh LABELS worker)
inferstat_script_test(worker.stop worker_stop.sh LABELS worker)
inferstat_script_test(worker.records worker_records.sh LABELS worker)
inferstat_script_test(worker.bad_models worker_bad_models.sh LABELS worker)
inferstat_script_test(worker.vectors worker_vectors.py LABELS worker)
inferstat_script_test(worker.replay test_replay.py LABELS worker TIMEOUT 300)
inferstat_script_test(worker.keys test_worker_keys.py WorkerKeysTest LABELS worker TIMEOUT 240)

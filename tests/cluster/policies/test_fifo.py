def test_nobody_overtakes_a_job_that_does_not_fit(replay):
    trace = [replay.job("a", 20, 100.0), replay.job("b", 32, 50.0, submit=1.0), replay.job("c", 1, 10.0, submit=2.0)]
    jobs, _ = replay("fifo", trace)
    assert (jobs["b"].start_s, jobs["c"].start_s) == (100.0, 150.0)

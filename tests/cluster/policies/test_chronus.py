def test_a_deadline_is_met_that_fifo_misses(replay):
    trace = [replay.job("best_effort", 32, 5000.0), replay.job("urgent", 32, 500.0, submit=10.0, deadline=1500.0)]
    assert replay("fifo", trace)[0]["urgent"].deadline_met is False
    jobs, _ = replay("chronus", trace)
    assert jobs["urgent"].deadline_met is True
    assert jobs["best_effort"].starts == 2


def test_a_deadline_that_is_lost_holds_nobody_up(replay):
    trace = [replay.job("lost", 32, 5000.0, deadline=100.0), replay.job("short", 32, 50.0)]
    jobs, _ = replay("chronus", trace)
    assert jobs["short"].start_s == 0.0
    assert jobs["lost"].deadline_met is False

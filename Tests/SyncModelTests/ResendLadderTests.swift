import DeliveryHistory
import SyncModel
import TestSupport
import Testing

@Suite("The resend ladder decides the times of resends and dead letters")
struct ResendLadderTests {
    private let ladder = ResendLadder()

    @Test(
        "six repeats, each wait twice the one before; after the sixth the last wait once more, then dead",
        arguments: [
            (0, 10, ResendLadder.Step.handOut(attempt: 2)), (1, 20, .handOut(attempt: 3)),
            (2, 40, .handOut(attempt: 4)), (3, 80, .handOut(attempt: 5)), (4, 160, .handOut(attempt: 6)),
            (5, 320, .handOut(attempt: 7)), (6, 320, .dead(.notConfirmed)),
        ])
    func steps(repeats: Int, seconds: Int, step: ResendLadder.Step) {
        let next = ladder.next(after: ResendLadder.State(repeats: repeats, handOuts: repeats + 1))
        #expect(next.wait == .seconds(seconds) && next.step == step)
    }

    @Test("hand-outs after restarts are no steps, but the fiftieth is the last, on whatever step", arguments: 0...6)
    func crashLoop(repeats: Int) {
        let last = ladder.next(after: ResendLadder.State(repeats: repeats, handOuts: 49)).step
        #expect(last == (repeats == 6 ? .dead(.notConfirmed) : .handOut(attempt: 50)))
        let spent = ResendLadder.State(repeats: repeats, handOuts: 50)
        #expect(spent.isSpent && ladder.next(after: spent).step == .dead(.handedOutTooOften))
    }

    @Test("a first wait outside of the bounds counts as the nearest within, and so do impossible counts")
    func bounds() {
        #expect(ResendLadder(firstWait: .zero).firstWait == Limits.shortestFirstResend)
        #expect(ResendLadder(firstWait: .seconds(-5)).firstWait == Limits.shortestFirstResend)
        #expect(ResendLadder(firstWait: .seconds(1_000_000)).firstWait == Limits.longestFirstResend)
        #expect(ResendLadder(firstWait: .milliseconds(20)).firstWait == .milliseconds(20))
        let damaged = ResendLadder.State(repeats: .max, handOuts: -3)
        #expect(damaged.repeats == 6 && damaged.handOuts == 0 && ladder.next(after: damaged).wait == .seconds(320))
    }

    @Test("any mix of steps and restarts: at most 6 resends and 50 hand-outs, waits never shrink, and it ends")
    func randomLives() {
        for seed in UInt64(1)...500 {
            var random = SeededGenerator(seed: seed)
            let restarts = Double.random(in: 0...1, using: &random)
            var (repeats, handOuts, lastWait) = (0, 1, Duration.zero)
            var death: ResendLadder.Death?
            while death == nil {
                let state = ResendLadder.State(repeats: repeats, handOuts: handOuts)
                if !state.isSpent && Double.random(in: 0..<1, using: &random) < restarts {
                    handOuts += 1
                } else {
                    let next = ladder.next(after: state)
                    #expect(next.wait >= lastWait, "seed \(seed)")
                    lastWait = next.wait
                    switch next.step {
                    case .handOut(let attempt):
                        #expect(attempt == handOuts + 1, "seed \(seed)")
                        (repeats, handOuts) = (repeats + 1, attempt)
                    case .dead(let reason): death = reason
                    }
                }
                #expect(repeats <= 6 && handOuts <= 50, "seed \(seed)")
            }
            #expect(death == (handOuts == 50 ? .handedOutTooOften : .notConfirmed), "seed \(seed)")
            #expect(handOuts == 50 || repeats == 6, "seed \(seed)")
        }
    }
}

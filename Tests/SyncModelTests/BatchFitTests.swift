import SyncModel
import Testing

@Suite("Batches say where they begin and end")
struct BatchFitTests {
    @Test(
        "a batch applies, is known, or leaves a gap",
        arguments: [
            (5, 5, 7, BatchFit.applies), (5, 3, 7, .applies), (5, 5, 5, .known), (5, 2, 4, .known), (5, 6, 9, .gap),
            (0, 0, 1, .applies), (5, 9, 9, .gap),
        ])
    func fits(position: Int64, after: Int64, upto: Int64, expected: BatchFit) {
        #expect(BatchFit(position: OplogID(position), after: OplogID(after), upto: OplogID(upto)) == expected)
    }
}

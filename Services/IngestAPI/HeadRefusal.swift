/// The answer to a request whose head is enough to refuse it.
struct HeadRefusal: Error, Sendable {
    let answer: HTTPAnswer
}

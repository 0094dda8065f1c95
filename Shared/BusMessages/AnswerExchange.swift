/// A direct exchange for answers, keyed by the process that asked.
///
/// Answering straight back (direct reply-to) is the shortest way, but it takes the right to publish to the default
/// exchange and with it to every queue there is. The oplog writer, which has all data anyway, answers so. Who else
/// answers does it through an exchange of its own (SEC10).
package enum AnswerExchange: String, Sendable, CaseIterable {
    /// From session validators to gateways, consoles and the tool.
    case verdicts = "mss.verdicts"
    /// From relays to gateways, consoles and the tool.
    case relayed = "mss.relayed"
    /// From gateways to oplog writers: what they took of a notice.
    case taken = "mss.taken"

    /// The exclusive queue of one asking process.
    package func queue(processID: String) -> String { "\(rawValue).\(processID)" }
}

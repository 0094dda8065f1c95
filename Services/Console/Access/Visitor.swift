import Credentials
import Crypto
import SyncModel

/// Who makes a request, as far as is known.
struct Visitor: Sendable {
    /// How a request says whose it is.
    enum Proof: Sendable {
        /// A browser's cookie, which other sites can make it send: changes need the form token as well.
        case cookie
        /// A program's header, which no site can make a browser send.
        case bearer
    }

    let account: ConsoleAccount
    let token: SessionToken
    let proof: Proof
    /// The password was given within the last five minutes.
    let isConfirmed: Bool

    /// The address that the request comes from.
    var source = ""

    /// For the records.
    var actor: OperationActor { OperationActor("console:\(account.name)", from: source) }
}

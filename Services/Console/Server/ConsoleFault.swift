/// The refusal of a request, with a text that says what to do. Pages and the API show the same text.
struct ConsoleFault: Error, Hashable {
    /// The HTTP status.
    let status: Int
    /// A stable code for programs.
    let code: String
    /// The key of the text in `words.json`.
    let word: String
    /// Replaces `%` in the text.
    var detail = ""
    /// Whether the detail is an English sentence of another process, to be translated by `SentenceTranslations`.
    var isSentence = false
    /// The name of the wrong input.
    var field: String?
    /// Seconds to wait before a repeat.
    var retryAfter: Int?

    // MARK: Accounts

    static let signedOut = ConsoleFault(status: 401, code: "SIGNED_OUT", word: "fault.signedOut")
    static let signInFailed = ConsoleFault(status: 401, code: "SIGN_IN_FAILED", word: "fault.signInFailed")
    static let codeNeeded = ConsoleFault(status: 401, code: "CODE_NEEDED", word: "fault.codeNeeded", field: "code")
    static let notAllowed = ConsoleFault(status: 403, code: "NOT_ALLOWED", word: "fault.notAllowed")
    static let otherOrigin = ConsoleFault(status: 403, code: "OTHER_ORIGIN", word: "fault.otherOrigin")
    static let passwordNeeded = ConsoleFault(status: 403, code: "PASSWORD_NEEDED", word: "fault.passwordNeeded")
    static let secondFactorNeeded = ConsoleFault(
        status: 403, code: "SECOND_FACTOR_NEEDED", word: "fault.secondFactorNeeded")
    static let invitationGone = ConsoleFault(status: 403, code: "INVITATION_GONE", word: "fault.invitationGone")

    /// Too many wrong passwords or codes. Only for a signed-in account; a sign-in answers `signInFailed` instead.
    static func tooManyTries(_ wait: Duration, field: String) -> ConsoleFault {
        let seconds = max(1, Int((wait / .seconds(1)).rounded(.up)))
        return ConsoleFault(
            status: 429, code: "TOO_MANY_TRIES", word: "fault.tooManyTries", detail: "\(seconds)", field: field,
            retryAfter: seconds)
    }

    // MARK: Input

    static let noSuchPage = ConsoleFault(status: 404, code: "NO_SUCH_PAGE", word: "fault.noSuchPage")
    static let wrongMethod = ConsoleFault(status: 405, code: "WRONG_METHOD", word: "fault.wrongMethod")
    static let tooLong = ConsoleFault(status: 413, code: "TOO_LONG", word: "fault.tooLong")
    static let notJSON = ConsoleFault(status: 400, code: "NOT_JSON", word: "fault.notJSON")

    /// No item has this name.
    static func noSuch(_ word: String, _ name: String) -> ConsoleFault {
        ConsoleFault(status: 404, code: "NO_SUCH_THING", word: "fault.noSuch.\(word)", detail: name)
    }

    /// An input has a wrong value.
    static func wrong(_ field: String, _ word: String, _ detail: String = "") -> ConsoleFault {
        ConsoleFault(status: 422, code: "WRONG_INPUT", word: word, detail: detail, field: field)
    }

    /// A refusal of the store or the model, with its reason.
    static func refused(_ reason: String, field: String? = nil) -> ConsoleFault {
        ConsoleFault(
            status: 422, code: "REFUSED", word: "fault.refused", detail: reason, isSentence: true, field: field)
    }

    /// Another request has changed the item.
    static let stale = ConsoleFault(status: 409, code: "STALE", word: "fault.stale")

    /// The item exists already.
    static func exists(_ field: String) -> ConsoleFault {
        ConsoleFault(status: 409, code: "EXISTS", word: "fault.exists", field: field)
    }

    // MARK: Dependencies

    static let databaseAway = ConsoleFault(
        status: 503, code: "DATABASE_AWAY", word: "fault.databaseAway", retryAfter: 2)
    static let busy = ConsoleFault(status: 503, code: "BUSY", word: "fault.busy", retryAfter: 2)
    static let starting = ConsoleFault(status: 503, code: "STARTING", word: "fault.starting", retryAfter: 2)
    static let storeAway = ConsoleFault(status: 503, code: "STORE_AWAY", word: "fault.storeAway", retryAfter: 2)
    /// Not a refusal: the change is made, but this console's copy does not have it yet.
    static let notSeenYet = ConsoleFault(status: 202, code: "NOT_SEEN_YET", word: "fault.notSeenYet")
    static let notKnown = ConsoleFault(status: 504, code: "NOT_KNOWN", word: "fault.notKnown")
}

/// Why a call was not done, in words that say what to do; pages and the API show the same.
struct ConsoleFault: Error, Hashable {
    /// The HTTP status.
    let status: Int
    /// Stable, for programs.
    let code: String
    /// Key of the words; see `words.json`.
    let word: String
    /// Put into the words where they say `%`.
    var detail = ""
    /// The detail is a sentence of another process, in English, and is shown in the reader's language.
    var isSentence = false
    /// The input that is wrong, by its name.
    var field: String?
    /// Seconds after which a repeat has a chance.
    var retryAfter: Int?

    // MARK: Who calls

    static let signedOut = ConsoleFault(status: 401, code: "SIGNED_OUT", word: "fault.signedOut")
    static let signInFailed = ConsoleFault(status: 401, code: "SIGN_IN_FAILED", word: "fault.signInFailed")
    static let codeNeeded = ConsoleFault(status: 401, code: "CODE_NEEDED", word: "fault.codeNeeded", field: "code")
    static let notAllowed = ConsoleFault(status: 403, code: "NOT_ALLOWED", word: "fault.notAllowed")
    static let otherOrigin = ConsoleFault(status: 403, code: "OTHER_ORIGIN", word: "fault.otherOrigin")
    static let passwordNeeded = ConsoleFault(status: 403, code: "PASSWORD_NEEDED", word: "fault.passwordNeeded")
    static let secondFactorNeeded = ConsoleFault(
        status: 403, code: "SECOND_FACTOR_NEEDED", word: "fault.secondFactorNeeded")
    static let invitationGone = ConsoleFault(status: 403, code: "INVITATION_GONE", word: "fault.invitationGone")

    /// Too many passwords were wrong: for who is signed in, to whom it may be told.
    static func tooManyTries(_ wait: Duration, field: String) -> ConsoleFault {
        let seconds = max(1, Int((wait / .seconds(1)).rounded(.up)))
        return ConsoleFault(
            status: 429, code: "TOO_MANY_TRIES", word: "fault.tooManyTries", detail: "\(seconds)", field: field,
            retryAfter: seconds)
    }

    // MARK: What is called

    static let noSuchPage = ConsoleFault(status: 404, code: "NO_SUCH_PAGE", word: "fault.noSuchPage")
    static let wrongMethod = ConsoleFault(status: 405, code: "WRONG_METHOD", word: "fault.wrongMethod")
    static let tooLong = ConsoleFault(status: 413, code: "TOO_LONG", word: "fault.tooLong")
    static let notJSON = ConsoleFault(status: 400, code: "NOT_JSON", word: "fault.notJSON")

    /// There is nothing of that name.
    static func noSuch(_ word: String, _ name: String) -> ConsoleFault {
        ConsoleFault(status: 404, code: "NO_SUCH_THING", word: "fault.noSuch.\(word)", detail: name)
    }

    /// An input that will not do.
    static func wrong(_ field: String, _ word: String, _ detail: String = "") -> ConsoleFault {
        ConsoleFault(status: 422, code: "WRONG_INPUT", word: word, detail: detail, field: field)
    }

    /// A rule that the store or the model refused by, in its own words.
    static func refused(_ reason: String, field: String? = nil) -> ConsoleFault {
        ConsoleFault(
            status: 422, code: "REFUSED", word: "fault.refused", detail: reason, isSentence: true, field: field)
    }

    /// Somebody else has changed it meanwhile.
    static let stale = ConsoleFault(status: 409, code: "STALE", word: "fault.stale")

    /// It is there already.
    static func exists(_ field: String) -> ConsoleFault {
        ConsoleFault(status: 409, code: "EXISTS", word: "fault.exists", field: field)
    }

    // MARK: What is behind

    static let databaseAway = ConsoleFault(
        status: 503, code: "DATABASE_AWAY", word: "fault.databaseAway", retryAfter: 2)
    static let busy = ConsoleFault(status: 503, code: "BUSY", word: "fault.busy", retryAfter: 2)
    static let starting = ConsoleFault(status: 503, code: "STARTING", word: "fault.starting", retryAfter: 2)
    static let storeAway = ConsoleFault(status: 503, code: "STORE_AWAY", word: "fault.storeAway", retryAfter: 2)
    /// No refusal: it is made, and cannot be shown here yet.
    static let notSeenYet = ConsoleFault(status: 202, code: "NOT_SEEN_YET", word: "fault.notSeenYet")
    static let notKnown = ConsoleFault(status: 504, code: "NOT_KNOWN", word: "fault.notKnown")
}

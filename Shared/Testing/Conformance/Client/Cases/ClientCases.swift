/// A requirement for a client.
typealias ClientCase = ConformanceCase<ClientCaseSetup>

/// All requirements for a client. Each part of the specification has a type of its own.
enum ClientCases {
    /// The cases for every program. The slowest ones come first, so that the others run beside them.
    static let all: [ClientCase] =
        ClientTimerCases.all + ClientConnectCases.all + ClientBindCases.all + ClientFrameStateCases.cases
        + ClientFramingCases.all + ClientBatchCases.all + ClientStoreCases.all + ClientCrashCases.all
        + ClientLadderCases.all + ClientCloseCases.all + ClientSecretCases.all
}

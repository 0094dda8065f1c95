/// Why a body of facts is set aside before the database has seen it.
struct RejectedBody: Error {
    let reason: String
}

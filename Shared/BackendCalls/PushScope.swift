/// Which of the two calls a push came by.
package enum PushScope: Hashable, Sendable {
    /// `/webapi/sync/single`: to the user or device that linkToken names.
    case single
    /// `/webapi/sync/global`: to everybody; linkToken is ignored.
    case global
}

-- The caller's own statements run here: under the policies that the role is used to.
reset row_security

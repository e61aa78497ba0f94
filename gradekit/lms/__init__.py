"""gradekit inside of an LMS's container: where each LMS puts things, what it wants back, and what is uploaded to it.

layout      the paths and limits of each LMS, and how its record is written
autograde   one unattended grading: a failing result first, then the grade
package     what an instructor uploads
"""
